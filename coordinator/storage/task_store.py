"""Tasks in the database, apart from the updates that end them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, and_, bindparam, func, literal, or_, select, union_all, update

from coordinator.storage.database import Database
from coordinator.storage.records import CLOCK_SLACK, FederationState, Task, TaskCounts, TaskState, name_of
from coordinator.storage.row_mapping import chunks, columns_of, record, records
from coordinator.storage.tables import federations, tasks
from coordinator.storage.task_endings import count_failures, expire_open

__all__ = ["TaskStore"]

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
_IN_FEDERATION = tasks.c.federation == bindparam("federation")
_COUNTS = union_all(
    select(tasks.c.state, func.count().label("count"))
    .where(_IN_FEDERATION, tasks.c.round == bindparam("number"), tasks.c.state != TaskState.DONE)
    .group_by(tasks.c.state),
    select(literal(TaskState.DONE, tasks.c.state.type), func.count()).where(
        _IN_FEDERATION, tasks.c.counted_in == bindparam("number")
    ),
)
_COUNTS_BY_ROUND = (
    select(tasks.c.round, tasks.c.state, func.count()).where(_IN_FEDERATION).group_by(tasks.c.round, tasks.c.state)
)
_COUNT = select(func.count()).select_from(tasks).where(tasks.c.federation == bindparam("federation"))
_COUNT_OPEN = _COUNT.where(tasks.c.state == TaskState.OPEN)
_COUNT_OF_ROUND = _COUNT.where(tasks.c.round == bindparam("number"))
_HAND_OUT = (
    update(tasks).where(tasks.c.id == bindparam("task"), tasks.c.handed_at.is_(None)).values(handed_at=bindparam("at"))
)


class TaskStore:
    """The tasks of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, task: str) -> Task | None:
        """Return a task by its id."""
        return _first(self._database.look_up(_BY_ID, id=task))

    def of(
        self, federation: str, *, number: int | None = None, state: TaskState | None = None, device: str | None = None
    ) -> list[Task]:
        """Return the tasks of a federation, perhaps only those of a round, in a state or of a device; ordered by round
        and device id."""
        statement = _OF_FEDERATION.order_by(tasks.c.round, tasks.c.device, tasks.c.id)
        for column, wanted in ((tasks.c.round, number), (tasks.c.state, state), (tasks.c.device, device)):
            if wanted is not None:
                statement = statement.where(column == wanted)
        return records(Task, self._database.read(statement, federation=federation))

    def get_all(self, wanted: Collection[str]) -> list[Task]:
        """Return the tasks with these ids, in no order, without those that do not exist."""
        return [
            task
            for some in chunks(sorted(wanted))
            for task in records(Task, self._database.read(_ALL.where(tasks.c.id.in_(some))))
        ]

    def counted(self, federation: str, number: int) -> list[Task]:
        """Return the DONE tasks whose updates count in a round, ordered by (device name, task's round, task id)."""
        found = records(Task, self._database.read(_COUNTED, federation=federation, number=number))
        return sorted(found, key=lambda task: name_of(task.device))

    def oldest_open(self, device: str) -> Task | None:
        """Return the oldest open task of a device whose federation is running or paused."""
        return _first(self._database.look_up(_OPEN, device=device))

    def count_open(self, federation: str) -> int:
        """Return how many tasks of a federation are open."""
        return int(self._database.read(_COUNT_OPEN, federation=federation)[0][0])

    def count_in_round(self, federation: str, number: int) -> int:
        """Return how many tasks were opened in a round, whatever became of them."""
        return int(self._database.read(_COUNT_OF_ROUND, federation=federation, number=number)[0][0])

    def counts(self, federation: str, number: int) -> TaskCounts:
        """Return how the tasks opened in a round ended; `done` counts updates by `counted_in`."""
        counts = {state.value: 0 for state in TaskState}
        rows = self._database.read(_COUNTS, federation=federation, number=number)
        return TaskCounts(**(counts | {row[0].value: row[1] for row in rows}))

    def counts_by_round(self, federation: str) -> dict[int, dict[TaskState, int]]:
        """Return, by round, how many of the tasks opened in it are in each state."""
        found: dict[int, dict[TaskState, int]] = {}
        for number, state, count in self._database.read(_COUNTS_BY_ROUND, federation=federation):
            found.setdefault(number, {})[state] = count
        return found

    def expire(self, federation: str, *, created_before: float, at: float) -> list[str]:
        """Expire the open tasks created before then and count them as failed; return their devices.

        A task that was created in the future, before a clock was set back, counts as created `at`.
        """
        future = (
            tasks.c.federation == federation,
            tasks.c.state == TaskState.OPEN,
            tasks.c.created_at > at + CLOCK_SLACK,
        )
        bound = update(tasks).where(*future).values(created_at=at)

        def work(connection: Connection) -> list[str]:
            connection.execute(bound)
            old = (tasks.c.federation == federation, tasks.c.created_at < created_before)
            owners = expire_open(connection, *old, at=at)
            count_failures(connection, owners)
            return sorted(owners)

        return self._database.write(work)

    def busy_devices(self) -> dict[str, str]:
        """Return the devices with an open task in a running or paused federation, and their federations."""
        return dict(self._database.look_up(_BUSY))

    def mark_handed_out(self, times: Mapping[str, float]) -> None:
        """Note when tasks were first sent to their devices; a second time changes nothing."""
        if times:
            news = [{"task": task, "at": times[task]} for task in sorted(times)]
            self._database.write(lambda connection: connection.execute(_HAND_OUT, news) and None)


def _first(rows: Sequence[Any]) -> Task | None:
    """Return the task of the only row, if any. `look_up` returns its state as text."""
    if not rows:
        return None
    task = record(Task, rows[0])
    return task if isinstance(task.state, TaskState) else replace(task, state=TaskState(task.state))
