"""What a device and the coordinator say to each other, apart from plans, results and tensors.

A device enrols once and gets a token; polls, and is told what to do or when to come back; refuses with a reason, or
uploads and gets a receipt. Every request can be repeated: the answer to the second one is that of the first.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from edgefl.values.client_plan import ClientPlan
from edgefl.values.dataclass_fields import check_fields
from edgefl.values.device_profile import DeviceProfile
from edgefl.values.quantities import Seconds
from edgefl.values.schema import document
from edgefl.values.strings import Identifier, Name

__all__ = ["Assignment", "Enrolled", "Enrolment", "Outcome", "Reason", "Receipt", "Refusal"]


@document("enrolment", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """A device asks to take part. The join key travels as the bearer token of the request."""

    enrolment_id: Identifier
    """Chosen by the device at random, once: who asks twice, because the answer got lost, is one device."""

    profile: DeviceProfile
    """What the device can do."""

    software: Name
    """What it runs, such as 'edgefl 0.1.0'."""

    name: Identifier | None = field(default=None, metadata={"absent": "the coordinator finds one"})
    """What it wants to be called; refused if another device is called so. The same names give the same federation."""

    def __post_init__(self) -> None:
        check_fields(self)


@document("enrolled", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """The device takes part."""

    device_id: Identifier
    """What the coordinator calls it."""

    token: Identifier
    """The secret that it shows from now on. The coordinator keeps only its hash."""

    def __post_init__(self) -> None:
        check_fields(self)


@document("assignment", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The answer to a poll."""

    retry_seconds: Seconds
    """When to poll again, if there is nothing to do; jitter is in it already."""

    plan: ClientPlan | None = field(default=None, metadata={"absent": "nothing to do"})
    """What to do now, or None."""

    finished: bool = False
    """Whether the federation is over, so that there will never be anything to do again."""

    def __post_init__(self) -> None:
        check_fields(self)


class Reason(StrEnum):
    """Why a device does not do a task."""

    POWER = "power"
    """It is not on mains power, and may train only there."""
    TEMPERATURE = "temperature"
    """It is too warm."""
    HOURS = "hours"
    """It may not train at this time of the day."""
    ENERGY = "energy"
    """It has spent the joules of the day."""
    TRAFFIC = "traffic"
    """It has spent the bytes of the day."""
    MEMORY = "memory"
    """The task needs more memory than it may take."""
    STORAGE = "storage"
    """There is no room on its disk."""
    DATA = "data"
    """Its data do not fit the model, or there are none."""
    DIVERGED = "diverged"
    """Training gave numbers that are none."""
    DEADLINE = "deadline"
    """It could not be done in time."""
    UNSUPPORTED = "unsupported"
    """It has not what the plan asks for: a rule, an engine, a version."""
    BROKEN = "broken"
    """Something failed that should not."""
    STOPPED = "stopped"
    """Its owner stopped it."""


@document("refusal", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A device does not do a task."""

    reason: Reason
    """Why, for programs."""

    message: Name
    """Why, for a person."""

    def __post_init__(self) -> None:
        check_fields(self)


class Outcome(StrEnum):
    """What became of an upload or a refusal."""

    ACCEPTED = "accepted"
    """It is on the coordinator's disk, and will not be lost."""
    ALREADY = "already have it"
    """The same came before."""
    LATE = "late"
    """The round is closed: it was looked at, and is of no use any more."""


@document("receipt", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The coordinator has taken something."""

    task_id: Identifier
    """The task that it belongs to."""

    outcome: Outcome
    """What became of it."""

    retry_seconds: Seconds | None = field(default=None, metadata={"absent": "at once"})
    """When to poll again, for a device that keeps no connection open to wait; jitter is in it already."""

    def __post_init__(self) -> None:
        check_fields(self)
