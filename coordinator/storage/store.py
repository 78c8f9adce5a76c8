"""The Protocol of the coordinator's database. Every method is one transaction, and durable when it returns.

What two workers could do at the same time is decided here and nowhere else: a method that changes a state names the
state it starts from, and says whether it was the one that changed it. So a round is closed once, done once, and an
update that was accepted is in the round that it was accepted into.

Methods are called from several threads.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from coordinator.storage.records import (
    Artifact,
    Device,
    Federation,
    FederationState,
    JoinKey,
    Pulse,
    Round,
    RoundState,
    Task,
    TaskState,
)
from edgefl.errors import EdgeFLError

__all__ = ["Admission", "Ended", "Store", "UnavailableError", "Upload", "Verdict"]


class UnavailableError(EdgeFLError):
    """The database does not answer now. Nobody asked for anything wrong, and the same request may work later."""


class Verdict(StrEnum):
    """What became of a task's end that a device reported."""

    ACCEPTED = "accepted"
    ALREADY = "already have it"
    """The same update came before; or, of a refusal, any end that the device itself reported."""
    LATE = "late"
    """The task's round is closed; the report is kept, the update is not."""
    CONFLICT = "conflict"
    """The task ended otherwise before: with another update, or with a refusal."""
    UNKNOWN = "unknown"
    """There is no such task of this device."""
    WAIT = "wait"
    """Buffered only: no round is open at this moment, though one will be. Nothing has changed; try again shortly."""


class Admission(StrEnum):
    """What became of an enrolment."""

    ADMITTED = "admitted"
    UNKNOWN_KEY = "unknown key"
    REVOKED_KEY = "revoked key"
    EXPIRED_KEY = "expired key"
    SPENT_KEY = "spent key"
    NAME_TAKEN = "name taken"
    """Another device has this id."""
    REVOKED_DEVICE = "revoked device"
    """This very device was revoked."""


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
    """The task left the device's model alone: its mask stays what it was, whatever part the task gave it."""
    buffered: bool = False
    """Count it in whatever round is open, not in the task's own."""
    most_staleness: int = 0
    """Buffered only: rounds after which it is too old, and LATE."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How often tasks of a round ended in each way."""

    open: int
    done: int
    """Updates that count in the round, whichever round they were opened in."""
    refused: int
    expired: int
    late: int


class Store(Protocol):
    """Everything that the coordinator remembers, apart from blobs."""

    def close(self) -> None:
        """Let go of the database."""
        ...

    # Federations

    def add_federation(self, federation: Federation) -> bool:
        """Add it; say no if there is one of this id."""
        ...

    def federation(self, federation: str) -> Federation | None:
        """One of them, by its id."""
        ...

    def federations(self) -> list[Federation]:
        """All of them, oldest first."""
        ...

    def ended_federations(self) -> set[str]:
        """Those that are finished or aborted."""
        ...

    def move_federation(
        self,
        federation: str,
        to: FederationState,
        *,
        since: Collection[FederationState],
        at: float,
        reason: str | None = None,
    ) -> bool:
        """Change its state if it is in one of `since`; say whether it was. Aborting and finishing expire open tasks,
        which count as nobody's failure."""
        ...

    def set_reason(self, federation: str, reason: str | None) -> None:
        """Note, for its operator, why a federation does nothing."""
        ...

    def set_deadline(self, federation: str, seconds: float, *, before: float | None, later: float) -> bool:
        """Give the rounds of a federation this long, and close its open round so much later (or, below zero, earlier);
        say no if its deadline is not the one of `before` any more."""
        ...

    # Rounds

    def open_round(
        self, opened: Round, tasks: Sequence[Task], artifacts: Sequence[Artifact], *, deadline: float | None = None
    ) -> bool:
        """Add a round with its tasks and artifacts; say no if the federation is not running, or has that round, or has
        another one that is still open, or if its changed deadline is not `deadline` any more."""
        ...

    def add_tasks(
        self,
        federation: str,
        number: int,
        tasks: Sequence[Task],
        artifacts: Sequence[Artifact],
        *,
        attempt: int,
        next_attempt: int,
        deadline_at: float | None,
    ) -> bool:
        """Give an OPEN round further tasks, a new attempt and, if there is one, a new deadline; say no unless it is
        open and in `attempt`, and its federation is not over. (Buffered mode adds tasks with `next_attempt` equal to
        `attempt`.)"""
        ...

    def close_round(self, federation: str, number: int, *, because: str, at: float, expire: bool) -> bool:
        """OPEN to CLOSED, if it is still open. With `expire`, its open tasks become EXPIRED and count as failed."""
        ...

    def finish_round(
        self, federation: str, number: int, *, next_model: str, next_state_arrays: str | None, report: str, at: float
    ) -> bool:
        """CLOSED to DONE, if it is still closed."""
        ...

    def note_plan(self, federation: str, number: int, plan: str) -> None:
        """Note what the strategy says of the plan that a round opened with."""
        ...

    def round(self, federation: str, number: int) -> Round | None:
        """One of them, by its number."""
        ...

    def rounds(self, federation: str, *, state: RoundState | None = None, since: int = 0) -> list[Round]:
        """In the order of their numbers, from a number on."""
        ...

    def latest_round(self, federation: str) -> Round | None:
        """The one with the highest number."""
        ...

    def ended(self, federation: str, number: int) -> Ended:
        """How the tasks that were opened in this round ended; `done` counts updates by `counted_in`."""
        ...

    def fates(self, federation: str) -> dict[int, dict[TaskState, int]]:
        """How often the tasks that were opened in each round are in each state, by round."""
        ...

    # Tasks

    def task(self, task: str) -> Task | None:
        """One of them, by its id."""
        ...

    def tasks(
        self, federation: str, *, number: int | None = None, state: TaskState | None = None, device: str | None = None
    ) -> list[Task]:
        """In the order of rounds and device ids."""
        ...

    def tasks_of_ids(self, tasks: Collection[str]) -> list[Task]:
        """Those of these ids that there are, in no order."""
        ...

    def counted(self, federation: str, number: int) -> list[Task]:
        """The DONE tasks whose updates count in a round, in the order of (device id, task's round, task id)."""
        ...

    def open_task(self, device: str) -> Task | None:
        """The oldest open task of a device whose federation is running or paused."""
        ...

    def count_open(self, federation: str) -> int:
        """How many tasks of a federation are open."""
        ...

    def count_tasks(self, federation: str, number: int) -> int:
        """How many tasks were opened in a round, whatever became of them."""
        ...

    def expire_tasks(self, federation: str, *, created_before: float, at: float) -> list[str]:
        """Expire the open tasks that were created before then, and count them as failed; return their devices."""
        ...

    def busy_devices(self) -> dict[str, str]:
        """The devices that have an open task in a federation that is running or paused, and their federations."""
        ...

    def hand_out_all(self, times: Mapping[str, float]) -> None:
        """Note when tasks were first given to their devices; a second time changes nothing."""
        ...

    def accept(self, uploads: Sequence[Upload]) -> list[Verdict]:
        """Take updates, all in one transaction. ACCEPTED only if the round that it counts in is OPEN at the commit: no
        close can come between. An accepted one makes the task DONE, counts for the device, and notes samples and mask
        (`next_mask`, or else the plan's `mask_body`); a late one makes the task LATE and keeps its result."""
        ...

    def refuse(self, task: str, device: str, refusal: str, at: float) -> Verdict:
        """End an open task with a refusal, and count it as failed. After an accepted update or another refusal:
        ALREADY. After its round closed: LATE, and the refusal is kept."""
        ...

    # Devices

    def enrol(self, device: Device, key_hash: str) -> tuple[Admission, Device | None]:
        """Let a device in with a join key. `device.federation` and `device.key` are taken from the key, not from the
        argument; `device.enrolled_at` is now. The same enrolment id again, with a key of the same federation, is the
        same device: it keeps its id, gets the new token hash, profile and software, and uses the key up no further
        (so a spent key will do, while a revoked or expired one will not)."""
        ...

    def device(self, device: str) -> Device | None:
        """One of them, by its id, revoked ones included."""
        ...

    def device_of_token(self, token_hash: str) -> Device | None:
        """The device, revoked ones included."""
        ...

    def devices(self, federation: str) -> list[Device]:
        """In the order of their ids."""
        ...

    def count_devices(self, federation: str) -> int:
        """How many there are, revoked ones included."""
        ...

    def pulses(self, federation: str) -> list[Pulse]:
        """How the devices that are not revoked are doing, in the order of their ids."""
        ...

    def free_devices(self, federation: str, *, seen_since: float) -> list[Device]:
        """Those that are not revoked, were heard of since then, and have no open task; in the order of their ids."""
        ...

    def seen(self, times: Mapping[str, float]) -> None:
        """Note when devices were last heard of; a time never goes back."""
        ...

    def set_profile(self, device: str, profile: str) -> None:
        """Note what a device can do now."""
        ...

    def correct(self, corrections: Mapping[str, str]) -> None:
        """Note what devices' rounds really took against what was predicted, by device."""
        ...

    def revoke_device(self, device: str, at: float) -> bool:
        """Revoke it and expire its open tasks; say whether there was such a device, not revoked yet."""
        ...

    def revocations(self) -> tuple[int, float | None]:
        """How many devices were revoked, and when the last one was: other numbers mean that somebody was since."""
        ...

    # Join keys

    def add_key(self, key: JoinKey) -> None:
        """Add a key to its federation, which must be there."""
        ...

    def keys(self, federation: str) -> list[JoinKey]:
        """Oldest first."""
        ...

    def key_of_hash(self, key_hash: str) -> JoinKey | None:
        """The join key, whether or not it is still good."""
        ...

    def revoke_key(self, federation: str, key: str, at: float) -> bool:
        """Say whether there was such a key, not revoked yet."""
        ...

    # Artifacts

    def add_artifacts(self, artifacts: Sequence[Artifact]) -> None:
        """Allow downloads; what is there already stays, and lasts for the later of the two rounds."""
        ...

    def artifact(self, federation: str, digest: str) -> Artifact | None:
        """What the devices of a federation may download under this digest."""
        ...

    def drop_artifacts(self, federation: str, *, before_round: int, kinds: Collection[str]) -> list[str]:
        """Forget the artifacts of these kinds of earlier rounds, except those that a task of the federation names that
        is open, or whose update counts in a round that is not DONE; return the digests that nothing refers to any more,
        in any federation (no artifact, no round's model or arrays, no bundle, no device's mask)."""
        ...

    def unread_updates(self, federation: str, *, before_round: int) -> list[str]:
        """Digests of update bodies that count in rounds before this one that are DONE, or will never be as their
        federation is over, and in no other. Those that were forgotten are left out."""
        ...

    def forget_updates(self, digests: Collection[str]) -> None:
        """Their bodies are gone: note it in their tasks. (`update` stays: a repeated upload is still ALREADY.)"""
        ...

    # Workers

    def take_lease(self, name: str, owner: str, *, now: float, seconds: float) -> bool:
        """Become, or stay, the one worker that does something, until `now + seconds`."""
        ...

    def drop_lease(self, name: str, owner: str) -> None:
        """Let another worker do it at once; who does not hold the lease changes nothing."""
        ...

    def secret(self, name: str, value: str) -> str:
        """Return the stored text of this name; if there is none, store and return `value` (such as a token's hash)."""
        ...
