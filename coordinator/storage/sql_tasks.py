"""Tasks in the database, apart from the updates that end them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, and_, bindparam, func, or_, select, update

from coordinator.storage.database import Database
from coordinator.storage.records import FederationState, Task, TaskState
from coordinator.storage.sql_rows import chunks, columns_of, record, records
from coordinator.storage.sql_task_endings import count_failures, expire_open
from coordinator.storage.store import Verdict
from coordinator.storage.tables import federations, tasks

__all__ = ["SqlTasks"]

_ALL = select(*columns_of(tasks, Task))
_BY_ID = _ALL.where(tasks.c.id == bindparam("id"))
_OF_FEDERATION = _ALL.where(tasks.c.federation == bindparam("federation"))
_COUNTED = _OF_FEDERATION.where(tasks.c.counted_in == bindparam("number"), tasks.c.state == TaskState.DONE).order_by(
    tasks.c.device, tasks.c.round, tasks.c.id
)
_IS_WAITING = and_(
    tasks.c.state == TaskState.OPEN,
    federations.c.id == tasks.c.federation,
    or_(federations.c.state == FederationState.RUNNING, federations.c.state == FederationState.PAUSED),
)
_BUSY = select(tasks.c.device, tasks.c.federation).distinct().where(_IS_WAITING)
_OPEN = (
    _ALL.where(tasks.c.device == bindparam("device"), _IS_WAITING)
    .order_by(tasks.c.created_at, tasks.c.round, tasks.c.id)
    .limit(1)
)
_COUNT = select(func.count()).select_from(tasks).where(tasks.c.federation == bindparam("federation"))
_COUNT_OPEN = _COUNT.where(tasks.c.state == TaskState.OPEN)
_COUNT_OF_ROUND = _COUNT.where(tasks.c.round == bindparam("number"))
_HAND_OUT = (
    update(tasks).where(tasks.c.id == bindparam("task"), tasks.c.handed_at.is_(None)).values(handed_at=bindparam("at"))
)


class SqlTasks:
    """What `Store` says of tasks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def task(self, task: str) -> Task | None:
        """One of them."""
        return _first(self._database.look_up(_BY_ID, id=task))

    def tasks(
        self, federation: str, *, number: int | None = None, state: TaskState | None = None, device: str | None = None
    ) -> list[Task]:
        """Those of a federation, of a round, in a state, of a device; in the order of rounds and device ids."""
        statement = _OF_FEDERATION.order_by(tasks.c.round, tasks.c.device, tasks.c.id)
        for column, wanted in ((tasks.c.round, number), (tasks.c.state, state), (tasks.c.device, device)):
            if wanted is not None:
                statement = statement.where(column == wanted)
        return records(Task, self._database.read(statement, federation=federation))

    def tasks_of_ids(self, wanted: Collection[str]) -> list[Task]:
        """Those of these ids that there are."""
        return [
            task
            for some in chunks(sorted(wanted))
            for task in records(Task, self._database.read(_ALL.where(tasks.c.id.in_(some))))
        ]

    def counted(self, federation: str, number: int) -> list[Task]:
        """Those whose updates count in a round, in the order of (device id, task's round, task id)."""
        return records(Task, self._database.read(_COUNTED, federation=federation, number=number))

    def open_task(self, device: str) -> Task | None:
        """The oldest open task of a device whose federation is running or paused."""
        return _first(self._database.look_up(_OPEN, device=device))

    def count_open(self, federation: str) -> int:
        """How many tasks of a federation are open."""
        return int(self._database.read(_COUNT_OPEN, federation=federation)[0][0])

    def count_tasks(self, federation: str, number: int) -> int:
        """How many tasks were opened in a round."""
        return int(self._database.read(_COUNT_OF_ROUND, federation=federation, number=number)[0][0])

    def expire_tasks(self, federation: str, *, created_before: float, at: float) -> list[str]:
        """Expire the open tasks that were created before then, and count them as failed; return their devices."""

        def work(connection: Connection) -> list[str]:
            old = (tasks.c.federation == federation, tasks.c.created_at < created_before)
            owners = expire_open(connection, *old, at=at)
            count_failures(connection, owners)
            return sorted(owners)

        return self._database.write(work)

    def busy_devices(self) -> dict[str, str]:
        """The devices that have an open task in a federation that is running or paused, and their federations."""
        return dict(self._database.look_up(_BUSY))

    def hand_out_all(self, times: Mapping[str, float]) -> None:
        """Note when tasks were first given to their devices."""
        if times:
            news = [{"task": task, "at": times[task]} for task in sorted(times)]
            self._database.write(lambda connection: connection.execute(_HAND_OUT, news) and None)

    def refuse(self, task: str, device: str, refusal: str, at: float) -> Verdict:
        """End an open task with a refusal."""

        def work(connection: Connection) -> Verdict:
            found = connection.execute(_BY_ID.with_for_update(key_share=True), {"id": task}).first()
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


def _first(rows: Sequence[Any]) -> Task | None:
    """Return the task of the only row, if there is one, whose state may be a word yet."""
    if not rows:
        return None
    task = record(Task, rows[0])
    return task if isinstance(task.state, TaskState) else replace(task, state=TaskState(task.state))
