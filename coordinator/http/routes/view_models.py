"""What operators send and get, as Pydantic models.

Times are seconds since 1970. `coordinator.http.routes.conversion` builds them from records.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from coordinator.http.routes.openapi_schemas import DIGEST, IDENTIFIER

__all__ = [
    "AuditEntryView",
    "AuditView",
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
    "LeaseView",
    "MasksView",
    "MoveRequest",
    "NewKeyView",
    "NewTokenView",
    "ProgramFailure",
    "ProgramFileView",
    "ProgramView",
    "ProgramsView",
    "RetryRequest",
    "RetryView",
    "RotateRequest",
    "RoundView",
    "RoundsView",
    "SessionView",
    "TaskView",
    "TasksView",
    "TelemetryView",
    "TokenRequest",
    "TokenView",
    "TokensView",
    "WorkerRequest",
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
    """Why the state of a federation is changed."""

    reason: Annotated[str | None, Field(max_length=200, pattern=_TEXT)] = None


class KeyRequest(_Sent):
    """A join key to create."""

    label: Annotated[str, Field(max_length=200, pattern=_TEXT)] = ""
    most_uses: Annotated[int | None, Field(ge=1, le=10**9)] = None
    """The most devices that may join with it; null is no limit."""
    expires_seconds: Annotated[float | None, Field(gt=0, le=_LONGEST)] = None
    """How long it is valid; null is for ever."""
    address: Annotated[str | None, Field(max_length=300, pattern=r"^https?://[^\s\x00-\x1f\x7f-\x9f]+$")] = None
    """The address of this coordinator for devices; with it, the response has the pairing URI and its QR code. One on
    this machine stands for the address that other machines reach."""


class DeadlineRequest(_Sent):
    """How long rounds last from now on."""

    seconds: Annotated[float, Field(ge=1, le=_LONGEST)]
    closes_in: Annotated[float, Field(ge=0, le=_LONGEST)] | None = None
    """Seconds from now until the open round closes; without it, its deadline moves by the difference."""


class TokenRequest(_Sent):
    """A token of an operator to create."""

    name: Annotated[str, Field(pattern=IDENTIFIER, max_length=64)]
    role: Literal["admin", "viewer"]
    expires_seconds: Annotated[float | None, Field(gt=0, le=_LONGEST)] = None
    """How long it is valid; null is for ever."""


class RotateRequest(_Sent):
    """A token to replace."""

    expires_seconds: Annotated[float | None, Field(gt=0, le=_LONGEST)] = None
    """How long the new one is valid; null is as long as the old one was."""


class WorkerRequest(_Sent):
    """Who compiles a program."""

    worker: Annotated[str, Field(pattern=IDENTIFIER)]
    """A name that no other worker has. One that compiles several at once needs a name for each."""


class ProgramFailure(WorkerRequest):
    """Why a program could not be compiled."""

    reason: Annotated[str, Field(min_length=1, max_length=2000, pattern=_TEXT)]


class RetryRequest(_Sent):
    """What to compile again."""

    key: Annotated[str | None, Field(pattern=DIGEST)] = None
    """A program that failed, or that is no good; null is all that failed."""


class ProgramView(BaseModel):
    """A compiled program of a federation, or one that somebody should compile."""

    key: str
    """The key of its specification."""
    role: Literal["train", "infer"]
    rung: str
    """Its width and trained layers, such as '0.5 from block2, batch 32'."""
    batch_size: int
    state: Literal["wanted", "compiling", "ready", "failed"]
    demand: int
    """How often a plan could have used it before it was there."""
    wanted_at: float
    changed_at: float
    worker: str | None
    """Who compiles it, or compiled it."""
    lease_until: float | None
    """When others may take it over."""
    tries: int
    """How often compiling failed."""
    reason: str | None
    """Why compiling failed the last time."""
    size: int | None
    """Bytes of its file."""
    peak_bytes: int | None
    """Memory that it plans for what it computes."""
    made_with: str | None


class ProgramsView(BaseModel):
    """The programs of a federation."""

    programs: list[ProgramView]


class LeaseView(BaseModel):
    """A program that a worker is to compile."""

    key: str
    spec: dict[str, Any]
    """Its `ProgramSpec`."""
    rung: str
    lease_seconds: float
    """How long the worker may be silent before others take over."""


class ProgramFileView(BaseModel):
    """A stored file of a program."""

    digest: str


class RetryView(BaseModel):
    """How many programs are wanted again."""

    programs: int


class BundleView(BaseModel):
    """A stored bundle."""

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
    model_kept: bool
    """Whether the model that it ended with can still be downloaded."""
    report: dict[str, Any] | None
    """Its results: updates, losses, accuracies, seconds."""


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
    """Accuracy of the newest global model, if it was evaluated: of the part that devices hold."""
    judged_fraction: float | None = None
    """Share of the model's parameters in that part."""
    report: dict[str, Any] | None
    """The report of the last round that is done."""
    personal: dict[str, Any] | None
    """The report of the round that personalised the last model, once it is done."""
    created_at: float
    changed_at: float | None
    settings: dict[str, Any] | None = None
    """Only in the view of a single federation."""


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
    """Id of the join key that it enrolled with."""
    done: int
    failed: int
    samples: int | None
    engine: str | None
    """The training engine that it uses first, such as 'executorch 1.4.1'."""
    left_out: str | None
    """Why planning failed for it, or what its software lacks, until it gets a task."""
    capabilities: dict[str, Any] | None = None
    """What its software can run; null if it did not say."""
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
    kept_fraction: float | None
    """Share of the model's parameters in the device's submodel."""
    trained_fraction: float | None
    rung: str | None
    """The rung of its program, such as '0.5 from block2'; null if it runs the ONNX graph."""
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
    """A new join key. The key itself is shown only once."""

    key: str
    uri: str | None = None
    """The pairing URI that any browser opens, if the address was given."""
    app_uri: str | None = None
    """The same for a client that is installed."""
    join: str | None = None
    """The command to join."""
    qr: str | None = None
    """`uri` as a QR code, in SVG."""
    app_qr: str | None = None
    """`app_uri` as a QR code, in SVG."""


class TokenView(BaseModel):
    """A token of an operator, without the token itself."""

    name: str
    role: Literal["admin", "viewer"]
    from_start: bool
    """Whether the coordinator is started with it: it is in the state folder, or configured."""
    created_at: float
    expires_at: float | None
    used_at: float | None
    """When it was last used, to within a minute."""
    revoked_at: float | None
    """When it was revoked, or replaced by another one of its name."""


class TokensView(BaseModel):
    """The operators' tokens, revoked ones included."""

    tokens: list[TokenView]


class NewTokenView(TokenView):
    """A new token. The token itself is shown only once."""

    token: str


class AuditEntryView(BaseModel):
    """What somebody did, or was not allowed to do."""

    number: int
    """From 1, without gaps."""
    at: float
    kind: str
    """Who: admin, viewer, device, key (the holder of a join key), anyone, or coordinator."""
    actor: str
    """The name of the token, or the id of the device or key."""
    address: str
    action: str
    target: str
    outcome: Literal["done", "refused"]
    count: int
    """How often, where several are one entry."""
    detail: str
    """JSON, as a text: the hash is over its characters."""
    hash: str
    """SHA-256 over this entry and the hash of the one before."""


class AuditView(BaseModel):
    """A page of the audit log."""

    entries: list[AuditEntryView]


class SessionView(BaseModel):
    """What a token allows, and what the page needs to know."""

    role: Literal["admin", "viewer"]
    version: str
    charts: bool
    """Whether the charting library is installed."""
    style_ids: list[str]
    """Ids of elements that keep it from adding its own styles."""


class ChartView(BaseModel):
    """A chart: texts, and what `charts.js` draws."""

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
    """What each device trains in the latest round."""

    round: int | None
    devices: int
    plan: list[tuple[str, str, str]]
    """Figures about the plan: name, value, and meaning."""
    notes: list[str]
    charts: list[ChartView]


class DevicePageView(BaseModel):
    """Everything about one device."""

    device: DeviceView
    plan: dict[str, Any] | None
    """The plan of its newest task."""
    tasks: list[dict[str, Any]]
    """The last 200, newest first."""
    charts: list[ChartView]


class Health(BaseModel):
    """Whether the coordinator works."""

    status: Literal["ok"]
