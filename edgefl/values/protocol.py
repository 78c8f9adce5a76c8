"""Messages between a device and the coordinator, apart from plans, results and tensors.

A device enrols once and gets a token. It polls, and gets a task or the time of its next poll. It refuses a task with a
reason, or uploads a result and gets a receipt. Every request is idempotent: a repeated one gets the same response.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from edgefl.values.capabilities import Capabilities
from edgefl.values.client_plan import ClientPlan
from edgefl.values.dataclass_fields import check_fields
from edgefl.values.device_profile import DeviceProfile
from edgefl.values.quantities import Count, Seconds
from edgefl.values.schema import document
from edgefl.values.strings import Identifier, Name

__all__ = ["Assignment", "Enrolled", "Enrolment", "Outcome", "Pins", "Reason", "Receipt", "Refusal", "SampleCount"]


@document("enrolment", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """A device's request to take part. The join key is the bearer token of the request."""

    enrolment_id: Identifier
    """Chosen at random by the device, once, so that a retry after a lost response does not enrol a second device."""

    profile: DeviceProfile
    """The device's profile."""

    software: Name
    """The device's software, such as 'edgefl 0.1.0'."""

    name: Identifier | None = field(default=None, metadata={"absent": "the coordinator finds one"})
    """Requested device name; refused if another device has it. The same names give the same federation."""

    capabilities: Capabilities | None = field(default=None, metadata={"absent": "every rule and codec", "added": True})
    """What the device's software can run, or None for every rule and codec and for ONNX graphs."""

    samples: Count | None = field(default=None, metadata={"absent": "known after its first result", "added": True})
    """The number of its training samples: its first task is planned by it."""

    def __post_init__(self) -> None:
        check_fields(self)


@document("sample_count", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCount:
    """The number of training samples that a device has now."""

    samples: Count
    """The number, without validation samples."""

    def __post_init__(self) -> None:
        check_fields(self)


@document("enrolled", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """The response to an enrolment."""

    device_id: Identifier
    """The device's identifier at the coordinator."""

    token: Identifier
    """The device's secret from now on. The coordinator stores only its hash."""

    def __post_init__(self) -> None:
        check_fields(self)


@document("pins", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """The public keys that the coordinator's certificate may have; see `edgefl.pins`."""

    pins: tuple[Identifier, ...]
    """The current key's first, then the next one's. Empty if devices verify its certificate as usual."""

    def __post_init__(self) -> None:
        check_fields(self)


@document("assignment", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The response to a poll."""

    retry_seconds: Seconds
    """Seconds until the next poll, if there is no task; jitter is included."""

    plan: ClientPlan | None = field(default=None, metadata={"absent": "nothing to do"})
    """The task to do now, or None."""

    finished: bool = False
    """Whether the federation has ended, so that there will be no more tasks."""

    def __post_init__(self) -> None:
        check_fields(self)


class Reason(StrEnum):
    """Reason for refusing a task."""

    POWER = "power"
    """The device may train only on mains power, and is not."""
    TEMPERATURE = "temperature"
    """The device is too warm."""
    HOURS = "hours"
    """The device may not train at this time of day."""
    ENERGY = "energy"
    """The daily energy budget is spent."""
    TRAFFIC = "traffic"
    """The daily traffic budget is spent."""
    METERED = "metered"
    """The device may use unmetered networks only, and is not on one."""
    BATTERY_SAVER = "battery_saver"
    """The system saves battery, and the device may not work meanwhile."""
    THERMAL = "thermal"
    """The system reports thermal pressure; `temperature` is for degrees."""
    MEMORY = "memory"
    """The task needs more memory than the device allows."""
    STORAGE = "storage"
    """The disk is full."""
    DATA = "data"
    """The device has no data, or its data do not fit the model."""
    DIVERGED = "diverged"
    """Training diverged to NaN or infinity."""
    DEADLINE = "deadline"
    """The task could not be finished in time."""
    UNSUPPORTED = "unsupported"
    """The device lacks what the plan needs: a rule, an engine, a version."""
    BROKEN = "broken"
    """An unexpected failure."""
    STOPPED = "stopped"
    """The device was stopped by its owner."""


@document("refusal", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A device's refusal of a task."""

    reason: Reason
    """The reason, for programs."""

    message: Name
    """The reason, for people."""

    def __post_init__(self) -> None:
        check_fields(self)


class Outcome(StrEnum):
    """Outcome of an upload or a refusal."""

    ACCEPTED = "accepted"
    """Stored on the coordinator's disk; it will not be lost."""
    ALREADY = "already have it"
    """The same message was received before."""
    LATE = "late"
    """Valid, but the round is closed."""


@document("receipt", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The coordinator's acknowledgement."""

    task_id: Identifier
    """The task it belongs to."""

    outcome: Outcome
    """The outcome."""

    retry_seconds: Seconds | None = field(default=None, metadata={"absent": "at once"})
    """Seconds until the next poll, for a device that does not long-poll; jitter is included."""

    def __post_init__(self) -> None:
        check_fields(self)
