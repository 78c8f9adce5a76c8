"""What operators send and get, as Pydantic models: the only place that knows Pydantic, apart from who uses these.

Times are seconds since 1970. `coordinator.http.routes.conversion` makes them from records.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from coordinator.http.routes.openapi_schemas import DIGEST

__all__ = [
    "BundleView",
    "ChartView",
    "ChartsView",
    "DeadlineRequest",
    "DevicePageView",
    "DeviceView",
    "DevicesView",
    "FederationRequest",
    "FederationView",
    "FederationsView",
    "Health",
    "KeyRequest",
    "KeyView",
    "KeysView",
    "MasksView",
    "MoveRequest",
    "NewKeyView",
    "RoundView",
    "RoundsView",
    "SessionView",
    "TaskView",
    "TasksView",
    "TelemetryView",
]

_LONGEST = 10 * 365 * 86400
_TEXT = r"^[^\x00-\x1f\x7f-\x9f]*$"


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class FederationRequest(_Sent):
    """A federation to create."""

    settings: dict[str, Any]
    """`FederationSettings`, which check themselves."""
    bundle: Annotated[str, Field(pattern=DIGEST)]
    """Digest of a bundle that was sent to /v1/bundles."""


class MoveRequest(_Sent):
    """Why a federation is moved."""

    reason: Annotated[str | None, Field(max_length=200, pattern=_TEXT)] = None


class KeyRequest(_Sent):
    """A join key to make."""

    label: Annotated[str, Field(max_length=200, pattern=_TEXT)] = ""
    most_uses: Annotated[int | None, Field(ge=1, le=10**9)] = None
    """Devices that it lets in; null is no limit."""
    expires_seconds: Annotated[float | None, Field(gt=0, le=_LONGEST)] = None
    """How long it is good for; null is for ever."""
    address: Annotated[str | None, Field(max_length=300, pattern=r"^https?://[^\s\x00-\x1f\x7f-\x9f]+$")] = None
    """Where devices find this coordinator; with it, the answer has what a device's owner types or scans."""


class DeadlineRequest(_Sent):
    """How long rounds have from now on."""

    seconds: Annotated[float, Field(ge=1, le=_LONGEST)]


class BundleView(BaseModel):
    """A bundle that is kept."""

    digest: str


class RoundView(BaseModel):
    """A round."""

    number: int
    state: str
    attempt: int
    model: str
    opened_at: float
    deadline_at: float
    closed_at: float | None
    closed_because: str | None
    done_at: float | None
    next_model: str | None
    report: dict[str, Any] | None
    """What it gave: updates, losses, accuracies, seconds."""


class RoundsView(BaseModel):
    """The rounds of a federation."""

    rounds: list[RoundView]


class FederationView(BaseModel):
    """A federation and how it is doing."""

    name: str
    state: str
    reason: str | None
    mode: str
    strategy: str
    model: str
    rounds: int
    rounds_done: int
    round: RoundView | None
    """The latest round."""
    updates: int
    """Updates that count in it."""
    wanted: int
    """Updates that close it."""
    devices: int
    accuracy: float | None
    """Of the newest global model, where it was evaluated."""
    report: dict[str, Any] | None
    """What the last round that is done gave."""
    personal: dict[str, Any] | None
    """What making the last model their own gave devices, once that is done."""
    created_at: float
    changed_at: float | None
    settings: dict[str, Any] | None = None
    """Only where one federation is asked for."""


class FederationsView(BaseModel):
    """All federations."""

    federations: list[FederationView]


class DeviceView(BaseModel):
    """A device."""

    id: str
    state: Literal["available", "away", "revoked"]
    software: str
    enrolled_at: float
    seen_at: float
    revoked_at: float | None
    key: str
    """Id of the join key that let it in."""
    done: int
    failed: int
    samples: int | None
    profile: dict[str, Any]


class DevicesView(BaseModel):
    """The devices of a federation."""

    devices: list[DeviceView]


class TaskView(BaseModel):
    """A task."""

    id: str
    round: int
    device: str
    state: str
    created_at: float
    handed_at: float | None
    ended_at: float | None
    counted_in: int | None
    update: str | None
    result: dict[str, Any] | None
    refusal: dict[str, Any] | None


class TasksView(BaseModel):
    """Tasks of a federation."""

    tasks: list[TaskView]


class TelemetryView(BaseModel):
    """One row for every task that ended."""

    rows: list[dict[str, Any]]


class KeyView(BaseModel):
    """A join key, without the key itself."""

    id: str
    label: str
    created_at: float
    uses: int
    most_uses: int | None
    expires_at: float | None
    revoked_at: float | None


class KeysView(BaseModel):
    """The join keys of a federation."""

    keys: list[KeyView]


class NewKeyView(KeyView):
    """A new join key. The key itself is shown this once."""

    key: str
    join: str | None = None
    """The command that lets a device join, where the address was given."""
    qr: str | None = None
    """The same as a QR code, in SVG."""


class SessionView(BaseModel):
    """What a person's token is good for, and what the page needs to know."""

    role: Literal["admin", "viewer"]
    version: str
    charts: bool
    """Whether the charting library is there."""
    style_ids: list[str]
    """Ids of elements that keep it from adding styles of its own."""


class ChartView(BaseModel):
    """A chart: words, and what `charts.js` draws."""

    name: str
    title: str
    summary: str
    key: list[tuple[str, str]]
    height: int
    spec: dict[str, Any]


class ChartsView(BaseModel):
    """Charts of a federation."""

    charts: list[ChartView]


class MasksView(BaseModel):
    """Who trains what in the latest round."""

    round: int | None
    devices: int
    plan: list[tuple[str, str, str]]
    """What there is to say about the plan: a name, a figure, what it means."""
    notes: list[str]
    charts: list[ChartView]


class DevicePageView(BaseModel):
    """Everything about one device."""

    device: DeviceView
    plan: dict[str, Any] | None
    """Of its newest task."""
    tasks: list[dict[str, Any]]
    """Newest first, the last 200."""
    charts: list[ChartView]


class Health(BaseModel):
    """Whether it works."""

    status: Literal["ok"]
