"""Updates that arrive. The hottest path of the coordinator, and the one place where an update becomes one that counts.

A batch is one transaction of a handful of statements. It locks the open rounds of its federations first: a round
closes before the batch or after it, so an update that was accepted is in the round that it was accepted into. It then
locks its tasks. What becomes of each upload is decided in Python on what was read under the locks, and written at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BigInteger, Connection, bindparam, case, func, select, update

from coordinator.storage.database import Database
from coordinator.storage.plan_json import mask_given
from coordinator.storage.records import RoundState, TaskState
from coordinator.storage.sql_rows import chunks
from coordinator.storage.store import Upload, Verdict
from coordinator.storage.tables import Word, devices, rounds, tasks

__all__ = ["SqlUploads"]

_NAMED = tasks.c.id.in_(bindparam("ids", expanding=True))
# One lock for all batches of a round, not a shared one: behind a stream of shared locks, a close could wait for ever.
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
# One statement for all, so that devices are locked in one order.
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
    """What the batch changes for one device."""

    done: int = 0
    failed: int = 0
    samples: int | None = None
    masks: int = 0
    """How often it got a mask; `mask` is the last one."""
    mask: str | None = None
    result: str | None = None
    """The last task whose update counts."""


@dataclass(slots=True)
class _Batch:
    """What was read under the locks, and what is to be written."""

    open_rounds: dict[str, int]
    found: dict[str, _Found]
    connection: Connection
    latest_rounds: dict[str, int] = field(default_factory=dict)
    ended: list[dict[str, Any]] = field(default_factory=list)
    standings: dict[str, _Standing] = field(default_factory=dict)

    def judge(self, upload: Upload) -> Verdict:
        """Decide about one upload, and note what it changes: the next one of the same task sees it."""
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
        # With no round open, the next one is the soonest that it can count in.
        soonest = self._latest(task.federation) + 1 if number is None else number
        if soonest - task.round > upload.most_staleness:
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
        if task.state is TaskState.OPEN:  # one that expired has been counted
            self.standings.setdefault(task.device, _Standing()).failed += 1
        task.state = TaskState.LATE
        self._end(task, upload, number=None, digest=None, mask=None, kept=False)
        return Verdict.LATE

    def _end(self, task: _Found, upload: Upload, **values: object) -> None:
        ended = {"task": upload.task, "new_state": task.state, "at": upload.at, "text": upload.result}
        self.ended.append(ended | values)


class SqlUploads:
    """What `Store` says of updates."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def accept(self, uploads: Sequence[Upload]) -> list[Verdict]:
        """Take updates, all in one transaction."""
        if not uploads:
            return []

        def work(connection: Connection) -> list[Verdict]:
            batch = _read(connection, sorted({upload.task for upload in uploads}))
            verdicts = [batch.judge(upload) for upload in uploads]
            _write(connection, batch)
            return verdicts

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
