"""Rounds in the database: opened, closed and done once, whoever tries."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, insert, literal, select, union_all, update

from coordinator.storage.database import Database
from coordinator.storage.records import OVER, Artifact, FederationState, Round, RoundState, Task, TaskState
from coordinator.storage.sql_artifacts import put_artifacts
from coordinator.storage.sql_federations import lock_federation
from coordinator.storage.sql_rows import columns_of, fields_of, first_record, records
from coordinator.storage.sql_task_endings import count_failures, expire_open
from coordinator.storage.store import Ended
from coordinator.storage.tables import devices, federations, rounds, tasks

__all__ = ["SqlRounds"]

_OF_FEDERATION = select(*columns_of(rounds, Round)).where(rounds.c.federation == bindparam("federation"))
_BY_NUMBER = _OF_FEDERATION.where(rounds.c.number == bindparam("number"))
_LATEST = _OF_FEDERATION.order_by(rounds.c.number.desc()).limit(1)
_IN_FEDERATION = tasks.c.federation == bindparam("federation")
_ENDED = union_all(
    select(tasks.c.state, func.count().label("count"))
    .where(_IN_FEDERATION, tasks.c.round == bindparam("number"), tasks.c.state != TaskState.DONE)
    .group_by(tasks.c.state),
    select(literal(TaskState.DONE, tasks.c.state.type), func.count()).where(
        _IN_FEDERATION, tasks.c.counted_in == bindparam("number")
    ),
)
_FATES = select(tasks.c.round, tasks.c.state, func.count()).where(_IN_FEDERATION).group_by(tasks.c.round, tasks.c.state)
_DEADLINE = select(federations.c.deadline).where(federations.c.id == bindparam("id"))
_NEWEST = update(devices).where(devices.c.id == bindparam("owner")).values(last_task=bindparam("task"))


class SqlRounds:
    """What `Store` says of rounds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open_round(
        self, opened: Round, tasks: Sequence[Task], artifacts: Sequence[Artifact], *, deadline: float | None = None
    ) -> bool:
        """Add a round with all that belongs to it, if the federation is running and no round of it is open."""
        # No target: both a round of this number and another one that is open are conflicts.
        add = self._database.insert(rounds).on_conflict_do_nothing().returning(rounds.c.number)

        def work(connection: Connection) -> bool:
            if lock_federation(connection, opened.federation) != FederationState.RUNNING:
                return False
            if connection.execute(_DEADLINE, {"id": opened.federation}).scalar() != deadline:
                return False  # it was changed while the round was planned
            if connection.execute(add, fields_of(opened)).first() is None:
                return False
            self._add_work(connection, tasks, artifacts)
            return True

        return self._database.write(work)

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
        """Give an open round further tasks, if it is in `attempt` and its federation is not over."""
        move = (
            update(rounds)
            .where(_is(federation, number, RoundState.OPEN), rounds.c.attempt == attempt)
            .values(attempt=next_attempt, **({} if deadline_at is None else {"deadline_at": deadline_at}))
        )

        def work(connection: Connection) -> bool:
            state = lock_federation(connection, federation)
            if state is None or state in OVER or not connection.execute(move).rowcount:
                return False
            self._add_work(connection, tasks, artifacts)
            return True

        return self._database.write(work)

    def close_round(self, federation: str, number: int, *, because: str, at: float, expire: bool) -> bool:
        """OPEN to CLOSED, if it is still open."""
        move = (
            update(rounds)
            .where(_is(federation, number, RoundState.OPEN))
            .values(state=RoundState.CLOSED, closed_at=at, closed_because=because)
        )

        def work(connection: Connection) -> bool:
            if not connection.execute(move).rowcount:
                return False
            if expire:
                left = (tasks.c.federation == federation, tasks.c.round == number)
                count_failures(connection, expire_open(connection, *left, at=at))
            return True

        return self._database.write(work)

    def finish_round(
        self, federation: str, number: int, *, next_model: str, next_state_arrays: str | None, report: str, at: float
    ) -> bool:
        """CLOSED to DONE, if it is still closed."""
        move = (
            update(rounds)
            .where(_is(federation, number, RoundState.CLOSED))
            .values(
                state=RoundState.DONE,
                next_model=next_model,
                next_state_arrays=next_state_arrays,
                report=report,
                done_at=at,
            )
        )
        return self._database.write(lambda connection: connection.execute(move).rowcount > 0)

    def note_plan(self, federation: str, number: int, plan: str) -> None:
        """Note what is said of its plan."""
        note = update(rounds).where(rounds.c.federation == federation, rounds.c.number == number).values(plan=plan)
        self._database.write(lambda connection: connection.execute(note) and None)

    def round(self, federation: str, number: int) -> Round | None:
        """One of them."""
        return first_record(Round, self._database.read(_BY_NUMBER, federation=federation, number=number))

    def rounds(self, federation: str, *, state: RoundState | None = None, since: int = 0) -> list[Round]:
        """All of a federation, or those in a state, in the order of their numbers, from a number on."""
        statement = _OF_FEDERATION.where(rounds.c.number >= since).order_by(rounds.c.number)
        if state is not None:
            statement = statement.where(rounds.c.state == state)
        return records(Round, self._database.read(statement, federation=federation))

    def latest_round(self, federation: str) -> Round | None:
        """The one with the highest number."""
        return first_record(Round, self._database.read(_LATEST, federation=federation))

    def ended(self, federation: str, number: int) -> Ended:
        """How often the tasks of a round ended in each way."""
        counts = {state.value: 0 for state in TaskState}
        rows = self._database.read(_ENDED, federation=federation, number=number)
        return Ended(**(counts | {row[0].value: row[1] for row in rows}))

    def fates(self, federation: str) -> dict[int, dict[TaskState, int]]:
        """How often the tasks of each round are in each state."""
        found: dict[int, dict[TaskState, int]] = {}
        for number, state, count in self._database.read(_FATES, federation=federation):
            found.setdefault(number, {})[state] = count
        return found

    def _add_work(self, connection: Connection, further: Sequence[Task], allowed: Sequence[Artifact]) -> None:
        put_artifacts(connection, self._database, allowed)
        if further:
            connection.execute(insert(tasks), [fields_of(task) for task in further])
            connection.execute(_NEWEST, [{"owner": task.device, "task": task.id} for task in further])


def _is(federation: str, number: int, state: RoundState) -> ColumnElement[bool]:
    return and_(rounds.c.federation == federation, rounds.c.number == number, rounds.c.state == state)
