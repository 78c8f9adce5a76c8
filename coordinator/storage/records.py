"""The records of the database as plain values: federations, rounds, tasks, devices, programs, tokens, audit entries.

Times are seconds since 1970 as floats. Documents (plans, results, profiles, settings) are stored as the JSON text that
was received or sent. Nothing here knows SQL or HTTP.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = [
    "CLOCK_SLACK",
    "COORDINATOR",
    "Actor",
    "Admission",
    "Artifact",
    "AuditEntry",
    "AuditEvent",
    "Device",
    "Federation",
    "FederationState",
    "JoinKey",
    "OVER",
    "OperatorRole",
    "OperatorToken",
    "AuditOutcome",
    "ProgramRecord",
    "ProgramState",
    "Pulse",
    "Round",
    "RoundState",
    "Task",
    "TaskCounts",
    "TaskState",
    "Upload",
    "Verdict",
    "name_of",
    "qualified_id",
]

CLOCK_SLACK = 5.0
"""Seconds by which the clocks of workers may differ. A stored time that is further in the future was written before a
clock was set back."""


_AT = "@"
"""In an id, between name and federation. No name contains it."""


def qualified_id(name: str, federation: str) -> str:
    """Return the id of a device whose name is the id of a device of another federation."""
    return f"{name}{_AT}{federation}"


def name_of(device_id: str) -> str:
    """Return the name of a device, which is unique in its federation; the id is unique on the coordinator."""
    return device_id.partition(_AT)[0]


class FederationState(StrEnum):
    """The state of a federation."""

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    """The open round is completed; no other one opens."""
    FINISHED = "finished"
    ABORTED = "aborted"


OVER = frozenset({FederationState.FINISHED, FederationState.ABORTED})
"""States that a federation never leaves."""


class RoundState(StrEnum):
    """The state of a round. See `coordinator.rounds.state_machine`."""

    OPEN = "open"
    """Updates are accepted."""
    CLOSED = "closed"
    """No more updates are accepted: it is settled which ones count."""
    DONE = "done"
    """The next model is stored."""


class TaskState(StrEnum):
    """The state of a task."""

    OPEN = "open"
    DONE = "done"
    """An update came and counts in the round `counted_in`."""
    REFUSED = "refused"
    EXPIRED = "expired"
    """Nobody waits for it any more: its round, its federation or its own time is over, or its device was revoked."""
    LATE = "late"
    """An update came after that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Federation:
    """A federation."""

    id: str
    """Its name: unique on a coordinator."""
    settings: str
    """JSON of `FederationSettings`."""
    manifest: str
    """JSON of the bundle's `Manifest`."""
    bundle: str
    """Digest of the bundle (a zip file) in the blob store."""
    created_at: float
    state: FederationState = FederationState.CREATED
    reason: str | None = None
    """Why it is paused or aborted, for a person."""
    changed_at: float | None = None
    deadline: float | None = None
    """Seconds that a round lasts now, if the operator has changed the setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round of a federation."""

    federation: str
    number: int
    """From 0."""
    model: str
    """Digest of the weights that it starts from."""
    state_arrays: str | None = None
    """Digest of the arrays beside them, if any: the strategy's own, and in which rounds channels were held."""
    state: RoundState = RoundState.OPEN
    attempt: int = 1
    opened_at: float
    deadline_at: float
    closed_at: float | None = None
    closed_because: str | None = None
    done_at: float | None = None
    next_model: str | None = None
    """Digest of the weights that it ended with."""
    next_state_arrays: str | None = None
    report: str | None = None
    """JSON: the results of the round, for people and plots (updates, losses, accuracies, seconds)."""
    plan: str | None = None
    """JSON: what the strategy reports about the plan it opened with, figures by name (such as the bias of the
    average)."""
    model_kept: bool = True
    """Whether the model that it ended with is still in the blob store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one device is to do in one round, and what it did."""

    id: str
    federation: str
    round: int
    """The round that it was opened in; it starts from that round's model."""
    device: str
    plan: str
    """JSON of the `ClientPlan`."""
    created_at: float
    state: TaskState = TaskState.OPEN
    handed_at: float | None = None
    """When the device first got it."""
    ended_at: float | None = None
    counted_in: int | None = None
    """The round in which its update is aggregated."""
    update: str | None = None
    """Digest of the update's body."""
    result: str | None = None
    """JSON of the `LocalResult`, telemetry included."""
    next_mask: str | None = None
    """Digest of the body of the device's mask after the task, where its rule or the strategy changed it."""
    refusal: str | None = None
    """JSON of the `Refusal`."""
    kept_fraction: float | None = None
    """Share of the model's parameters in the device's submodel; None for tasks stored before this was recorded."""
    trained_fraction: float | None = None
    """Share of the model's parameters that the device trains."""
    rung: str | None = None
    """The rung of its program for people, such as '0.5 from block2'; None if it runs the ONNX graph."""


class ProgramState(StrEnum):
    """The state of a program. See `coordinator.storage.program_store`."""

    WANTED = "wanted"
    """A plan could have used it, and nobody compiles it."""
    COMPILING = "compiling"
    """A worker compiles it, until its lease ends."""
    READY = "ready"
    FAILED = "failed"
    """Compiling it failed, or ended its workers, so often that nobody tries it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRecord:
    """A program of a federation, compiled or wanted."""

    federation: str
    key: str
    """The key of its specification."""
    spec: str
    """JSON of the `ProgramSpec`."""
    state: ProgramState
    wanted_at: float
    """When a plan wanted it last, or when it came."""
    changed_at: float
    """When its state changed last."""
    demand: int = 0
    """How often plans wanted it."""
    takes: int = 0
    """How often a worker began to compile it and did not give it back."""
    tries: int = 0
    """How often compiling failed."""
    worker: str | None = None
    """Who compiles it, or compiled it last."""
    lease_until: float | None = None
    reason: str | None = None
    """Why compiling failed the last time."""
    program: str | None = None
    """JSON of the `Program`, whose digest plans name; None unless it is ready."""


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """How many tasks of a round are in each state."""

    open: int
    done: int
    """Updates that count in the round, whichever round their tasks were opened in."""
    refused: int
    expired: int
    late: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An update that was checked and whose body is in the blob store."""

    task: str
    device: str
    update: str
    """Digest of the body."""
    result: str
    """JSON of the `LocalResult`."""
    samples: int
    at: float
    next_mask: str | None = None
    keeps_mask: bool = False
    """The task left the device's model alone: its mask stays what it was, whatever submodel the task gave it."""
    buffered: bool = False
    """Count it in whichever round is open, not in the task's own."""
    most_staleness: int = 0
    """Buffered only: rounds after which it is too old, and LATE."""


class Verdict(StrEnum):
    """What became of a device's report of how its task ended."""

    ACCEPTED = "accepted"
    ALREADY = "already have it"
    """The same update came before; for a refusal, any end that the device itself reported."""
    LATE = "late"
    """The task's round is closed; the report is kept, the update is not."""
    CONFLICT = "conflict"
    """The task ended differently before: with another update, or with a refusal."""
    UNKNOWN = "unknown"
    """This device has no such task."""
    WAIT = "wait"
    """Buffered only: no round is open now, but one will be. Nothing has changed; try again shortly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device that enrolled."""

    id: str
    """Unique on the coordinator. Everybody else knows the device by its name."""
    federation: str
    enrolment_id: str
    token_hash: str
    key: str
    """Id of the join key that it enrolled with."""
    profile: str
    """JSON of its `DeviceProfile`."""
    software: str
    enrolled_at: float
    seen_at: float
    revoked_at: float | None = None
    done: int = 0
    """Tasks whose update counted."""
    failed: int = 0
    """Tasks that it refused or did not end in time."""
    samples: int | None = None
    """Training samples, as it said or as its last result said; None if it never did."""
    mask_body: str | None = None
    """Digest of the body of its latest mask: the one it was given or, where the rule changed it, sent back."""
    correction: str | None = None
    """JSON of its `Correction`: what its rounds really took, compared with what was predicted."""
    last_task: str | None = None
    """Id of the newest task that it was given."""
    last_result: str | None = None
    """Id of the newest task whose update counted."""
    left_out: str | None = None
    """Why the last plan that considered it failed for it, until it gets a task."""
    capabilities: str | None = None
    """JSON of its `Capabilities`; None if its software sent none."""
    engine: str | None = None
    """The training engine that it uses first, such as 'executorch 1.4.1': from its capabilities, for tables."""

    @property
    def name(self) -> str:
        """Its name, unique in its federation."""
        return name_of(self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """How a device is doing: the few columns that are read every second."""

    device: str
    seen_at: float
    done: int
    failed: int
    samples: int | None
    task: str | None
    """The newest task that it was given; its state follows."""
    state: TaskState | None
    round: int | None
    created_at: float | None
    handed_at: float | None
    ended_at: float | None
    result: str | None
    """The newest task whose update counted, which therefore has measurements."""
    left_out: str | None = None
    """Why planning failed for it."""
    engine: str | None = None
    """The training engine that it uses first."""

    @property
    def name(self) -> str:
        """The name of the device."""
        return name_of(self.device)


_KEY_SLACK = 60.0
"""Seconds by which the clock of the worker that created a key may be ahead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinKey:
    """A key with which devices join a federation. Only the hash of the key is stored."""

    id: str
    federation: str
    hash: str
    label: str
    created_at: float
    most_uses: int | None = None
    uses: int = 0
    expires_at: float | None = None
    revoked_at: float | None = None

    def is_expired(self, now: float) -> bool:
        """Return whether its time is over, or unknown because it was created before a clock was set back."""
        return self.expires_at is not None and (self.expires_at <= now or self.created_at > now + _KEY_SLACK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A blob that the devices of a federation may download."""

    federation: str
    digest: str
    kind: str
    """"graph", "model_graph", "mask", "weights", "inference", "extras", "tensors", "program" or "program_file"."""
    size: int
    round: int | None = None
    """The round that needs it; None if every round does."""


class Admission(StrEnum):
    """What became of an enrolment."""

    ADMITTED = "admitted"
    UNKNOWN_KEY = "unknown key"
    REVOKED_KEY = "revoked key"
    EXPIRED_KEY = "expired key"
    SPENT_KEY = "spent key"
    NAME_TAKEN = "name taken"
    """Another device of the federation has this name."""
    REVOKED_DEVICE = "revoked device"
    """This device was revoked."""


class OperatorRole(StrEnum):
    """What a person's token lets them do."""

    ADMIN = "admin"
    VIEWER = "viewer"
    """May read, but change nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorToken:
    """A token of an operator. Only the hash of the token is stored. At most one that is not revoked has a name."""

    id: str
    name: str
    role: OperatorRole
    hash: str
    created_at: float
    from_start: bool = False
    """Whether the coordinator was started with it: it is in the state folder, or was configured."""
    expires_at: float | None = None
    used_at: float | None = None
    """When it was last used, to within a minute."""
    revoked_at: float | None = None
    """When it was revoked, or replaced by another one of its name."""

    def is_valid(self, now: float) -> bool:
        """Return whether it opens anything."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Actor:
    """Who does something, as the audit log names them."""

    kind: str
    """"admin", "viewer", "device", "key" (the holder of a join key), "anyone" or "coordinator"."""
    name: str = ""
    """The name of the token, or the id of the device or key."""
    address: str = ""


COORDINATOR = Actor("coordinator")
"""The coordinator itself: what it does by its own rules, or because it was started."""


class AuditOutcome(StrEnum):
    """What became of an attempt."""

    DONE = "done"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """What the audit log is to remember."""

    at: float
    by: Actor
    action: str
    """Such as 'federation.start'."""
    target: str
    """What it was done to: the name of a federation, the id of a device."""
    outcome: AuditOutcome = AuditOutcome.DONE
    count: int = 1
    """How often, where several are one entry."""
    detail: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """An entry of the audit log."""

    number: int
    """From 1, without gaps."""
    at: float
    kind: str
    actor: str
    address: str
    action: str
    target: str
    outcome: str
    count: int
    detail: str
    """JSON."""
    hash: str
    """SHA-256 over this entry and the hash of the one before."""
