"""Accepts or refuses what devices report. This is the coordinator's hottest path, and only here an update is counted.

A batch is one transaction of a few statements. It locks the open rounds of its federations first: a round closes
before the batch or after it, so an accepted update counts in the round that it was accepted into. Then it locks its
tasks, decides in Python about each upload from what it read under the locks, and writes everything at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BigInteger, Connection, bindparam, case, func, select, update

from coordinator.storage.database import Database
from coordinator.storage.plan_json import mask_given
from coordinator.storage.records import RoundState, TaskState, Upload, Verdict
from coordinator.storage.row_mapping import chunks
from coordinator.storage.tables import Word, devices, rounds, tasks
from coordinator.storage.task_endings import count_failures

__all__ = ["UploadStore"]

_NAMED = tasks.c.id.in_(bindparam("ids", expanding=True))
# An exclusive lock per round, not a shared one: behind a stream of shared locks, a close could wait for ever.
_OPEN_ROUNDS = (
    select(rounds.c.federation, rounds.c.number)
    .where(rounds.c.state == RoundState.OPEN, rounds.c.federation.in_(select(tasks.c.federation).where(_NAMED)))
    .order_by(rounds.c.federation, rounds.c.number)
    .with_for_update(key_share=True, of=rounds)
)
_TASKS = (
    select(
        tasks.c.id, tasks.c.federation, tasks.c.round, tasks.c.device, tasks.c.plan, tasks.c.state, tasks.c["update"]
    )
    .where(_NAMED)
    .order_by(tasks.c.id)
    .with_for_update(key_share=True)
)
_TO_REFUSE = (
    select(tasks.c.device, tasks.c.state, tasks.c.refusal)
    .where(tasks.c.id == bindparam("id"))
    .with_for_update(key_share=True)
)
_LATEST = select(func.max(rounds.c.number)).where(rounds.c.federation == bindparam("federation"))
_END_TASK = (
    update(tasks)
    .where(tasks.c.id == bindparam("task"))
    .values(
        {
            "state": bindparam("new_state"),
            "ended_at": bindparam("at"),
            "counted_in": bindparam("number"),
            "update": bindparam("digest"),
            "result": bindparam("text"),
            "next_mask": bindparam("mask"),
            "body_kept": bindparam("kept"),
        }
    )
)
# One statement for all devices, so that they are locked in one order.
_COUNT = (
    update(devices)
    .where(devices.c.id == bindparam("device"))
    .values(
        done=devices.c.done + bindparam("more_done"),
        failed=devices.c.failed + bindparam("more_failed"),
        samples=func.coalesce(bindparam("new_samples", type_=BigInteger), devices.c.samples),
        mask_body=case(
            (bindparam("new_masks", type_=BigInteger) > 0, bindparam("mask", type_=Word)), else_=devices.c.mask_body
        ),
        last_result=func.coalesce(bindparam("new_result", type_=Word), devices.c.last_result),
    )
)


@dataclass(slots=True)
class _Found:
    """A task as the batch leaves it."""

    federation: str
    round: int
    device: str
    plan: str
    state: TaskState
    update: str | None


@dataclass(slots=True)
class _Standing:
    """What the batch changes in one device's record."""

    done: int = 0
    failed: int = 0
    samples: int | None = None
    masks: int = 0
    """How many masks it got; `mask` is the last one."""
    mask: str | None = None
    result: str | None = None
    """The last task whose update counts."""


@dataclass(slots=True)
class _Batch:
    """What was read under the locks, and what will be written."""

    open_rounds: dict[str, int]
    found: dict[str, _Found]
    connection: Connection
    latest_rounds: dict[str, int] = field(default_factory=dict)
    ended: list[dict[str, Any]] = field(default_factory=list)
    standings: dict[str, _Standing] = field(default_factory=dict)

    def decide(self, upload: Upload) -> Verdict:
        """Decide about one upload and note what it changes, so that the next upload of the same task sees it."""
        task = self.found.get(upload.task)
        if task is None or task.device != upload.device:
            return Verdict.UNKNOWN
        if task.state is TaskState.DONE:
            return Verdict.ALREADY if task.update == upload.update else Verdict.CONFLICT
        if task.state is TaskState.REFUSED:
            return Verdict.CONFLICT
        if task.state is TaskState.LATE:
            return Verdict.LATE
        if task.state is TaskState.EXPIRED:
            return self._late(task, upload)
        number = self.open_rounds.get(task.federation)
        if upload.buffered:
            return self._buffered(task, upload, number)
        return self._accepted(task, upload, number) if number == task.round else self._late(task, upload)

    def _buffered(self, task: _Found, upload: Upload, number: int | None) -> Verdict:
        # With no open round, the next one is the earliest that it can count in.
        earliest = self._latest(task.federation) + 1 if number is None else number
        if earliest - task.round > upload.most_staleness:
            return self._late(task, upload)
        return Verdict.WAIT if number is None else self._accepted(task, upload, number)

    def _latest(self, federation: str) -> int:
        if federation not in self.latest_rounds:
            latest = self.connection.execute(_LATEST, {"federation": federation}).scalar_one()
            self.latest_rounds[federation] = latest
        return self.latest_rounds[federation]

    def _accepted(self, task: _Found, upload: Upload, number: int) -> Verdict:
        standing = self.standings.setdefault(task.device, _Standing())
        standing.done += 1
        standing.samples, standing.result = upload.samples, upload.task
        if not upload.keeps_mask:
            standing.masks += 1
            standing.mask = upload.next_mask or mask_given(task.plan)
        task.state, task.update = TaskState.DONE, upload.update
        self._end(task, upload, number=number, digest=upload.update, mask=upload.next_mask, kept=True)
        return Verdict.ACCEPTED

    def _late(self, task: _Found, upload: Upload) -> Verdict:
        if task.state is TaskState.OPEN:  # an expired one was counted before
            self.standings.setdefault(task.device, _Standing()).failed += 1
        task.state = TaskState.LATE
        self._end(task, upload, number=None, digest=None, mask=None, kept=False)
        return Verdict.LATE

    def _end(self, task: _Found, upload: Upload, **values: object) -> None:
        ended = {"task": upload.task, "new_state": task.state, "at": upload.at, "text": upload.result}
        self.ended.append(ended | values)


class UploadStore:
    """Accepts updates and refusals into the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def accept(self, uploads: Sequence[Upload]) -> list[Verdict]:
        """Take updates, all in one transaction; return a verdict for each.

        One is ACCEPTED only if the round that it counts in is OPEN at the commit: no close can come between. An
        accepted one makes the task DONE, counts for the device, and notes samples and mask (`next_mask`, or else the
        plan's `mask_body`); a late one makes the task LATE and keeps its result.
        """
        if not uploads:
            return []

        def work(connection: Connection) -> list[Verdict]:
            batch = _read(connection, sorted({upload.task for upload in uploads}))
            verdicts = [batch.decide(upload) for upload in uploads]
            _write(connection, batch)
            return verdicts

        return self._database.write(work)

    def refuse(self, task: str, device: str, refusal: str, at: float) -> Verdict:
        """End an open task with a refusal, and count it as failed.

        Return ALREADY after an accepted update or another refusal; LATE, and keep the refusal, after its round closed.
        """

        def work(connection: Connection) -> Verdict:
            found = connection.execute(_TO_REFUSE, {"id": task}).first()
            if found is None or found.device != device:
                return Verdict.UNKNOWN
            if found.state in (TaskState.DONE, TaskState.REFUSED):
                return Verdict.ALREADY
            note = update(tasks).where(tasks.c.id == task)
            if found.state != TaskState.OPEN:
                if found.refusal is None:
                    connection.execute(note.values(refusal=refusal))
                return Verdict.LATE
            connection.execute(note.values(state=TaskState.REFUSED, ended_at=at, refusal=refusal))
            count_failures(connection, [device])
            return Verdict.ACCEPTED

        return self._database.write(work)


def _read(connection: Connection, names: Sequence[str]) -> _Batch:
    opened: dict[str, int] = {}
    for ids in chunks(names):
        opened.update((row.federation, row.number) for row in connection.execute(_OPEN_ROUNDS, {"ids": ids}))
    found: dict[str, _Found] = {}
    for ids in chunks(names):
        found.update((row[0], _Found(*row[1:])) for row in connection.execute(_TASKS, {"ids": ids}))
    return _Batch(opened, found, connection)


def _write(connection: Connection, batch: _Batch) -> None:
    if batch.ended:
        connection.execute(_END_TASK, batch.ended)
    if batch.standings:
        connection.execute(_COUNT, [_count(device, batch.standings[device]) for device in sorted(batch.standings)])


def _count(device: str, standing: _Standing) -> dict[str, Any]:
    return {
        "device": device,
        "more_done": standing.done,
        "more_failed": standing.failed,
        "new_samples": standing.samples,
        "new_masks": standing.masks,
        "mask": standing.mask,
        "new_result": standing.result,
    }
