"""Rounds in the database. Each is opened, closed and done once, however many workers try."""

from collections.abc import Callable, Sequence

from sqlalchemy import ColumnElement, Connection, and_, bindparam, insert, select, update

from coordinator.storage.artifact_index import put_artifacts
from coordinator.storage.database import Database
from coordinator.storage.federation_store import lock_federation
from coordinator.storage.records import OVER, Artifact, FederationState, Round, RoundState, Task
from coordinator.storage.row_mapping import columns_of, fields_of, first_record, records
from coordinator.storage.tables import devices, federations, rounds, tasks
from coordinator.storage.task_endings import count_failures, expire_open

__all__ = ["RoundStore"]

_OF_FEDERATION = select(*columns_of(rounds, Round)).where(rounds.c.federation == bindparam("federation"))
_BY_NUMBER = _OF_FEDERATION.where(rounds.c.number == bindparam("number"))
_LATEST = _OF_FEDERATION.order_by(rounds.c.number.desc()).limit(1)
_DEADLINE = select(federations.c.deadline).where(federations.c.id == bindparam("id"))
_NEWEST = update(devices).where(devices.c.id == bindparam("owner")).values(last_task=bindparam("task"), left_out=None)


class RoundStore:
    """The rounds of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open(
        self,
        opened: Round,
        tasks: Sequence[Task],
        artifacts: Sequence[Artifact],
        *,
        deadline: float | None = None,
        stored: Callable[[], bool] | None = None,
    ) -> bool:
        """Add a round with its tasks and artifacts.

        Return False if the federation is not running, has this round already, has another open round, no longer has
        the changed deadline `deadline`, or if its model is not `stored`: another federation may have dropped an equal
        one.
        """
        # No conflict target: a round of this number and another open round both conflict.
        add = self._database.insert(rounds).on_conflict_do_nothing().returning(rounds.c.number)

        def work(connection: Connection) -> bool:
            if lock_federation(connection, opened.federation) != FederationState.RUNNING:
                return False
            if connection.execute(_DEADLINE, {"id": opened.federation}).scalar() != deadline:
                return False  # changed while the round was planned
            self._database.lock_models(connection)
            if stored is not None and not stored():
                return False
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
        """Give an OPEN round further tasks, a new attempt and, unless `deadline_at` is None, a new deadline.

        Return False unless the round is open and in `attempt`, and its federation is not over. Buffered mode adds
        tasks with `next_attempt` equal to `attempt`.
        """
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

    def bound_deadline(self, current: Round, *, latest: float, now: float, deadline: float | None) -> bool:
        """Let an OPEN round close at `latest` if that is earlier, and count as opened by now.

        Return False if it is not open, or its federation no longer has the changed deadline `deadline`.
        """
        bound = (
            update(rounds)
            .where(_is(current.federation, current.number, RoundState.OPEN), rounds.c.deadline_at > latest)
            .values(deadline_at=latest, opened_at=min(current.opened_at, now))
        )

        def work(connection: Connection) -> bool:
            lock_federation(connection, current.federation)
            if connection.execute(_DEADLINE, {"id": current.federation}).scalar() != deadline:
                return False
            return connection.execute(bound).rowcount > 0

        return self._database.write(work)

    def close(self, federation: str, number: int, *, because: str, at: float, expire: bool) -> bool:
        """Move a round from OPEN to CLOSED; return False if it is not open.

        With `expire`, its open tasks become EXPIRED and count as failed.
        """
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

    def finish(
        self,
        federation: str,
        number: int,
        *,
        next_model: str,
        next_state_arrays: str | None,
        report: str,
        at: float,
        stored: Callable[[], bool] | None = None,
    ) -> bool:
        """Move a round from CLOSED to DONE; return False if it is not closed, or if the next model is not `stored`:
        another federation may have dropped an equal one."""
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

        def work(connection: Connection) -> bool:
            self._database.lock_models(connection)
            return (stored is None or stored()) and connection.execute(move).rowcount > 0

        return self._database.write(work)

    def with_models(self, federation: str) -> list[Round]:
        """Return the rounds that are DONE and whose models are kept, in order."""
        kept = _OF_FEDERATION.where(rounds.c.state == RoundState.DONE, rounds.c.model_kept).order_by(rounds.c.number)
        return records(Round, self._database.read(kept, federation=federation))

    def note_plan(self, federation: str, number: int, plan: str) -> None:
        """Note what the strategy reports about the plan that a round opened with."""
        note = update(rounds).where(rounds.c.federation == federation, rounds.c.number == number).values(plan=plan)
        self._database.write(lambda connection: connection.execute(note) and None)

    def get(self, federation: str, number: int) -> Round | None:
        """Return a round by its number."""
        return first_record(Round, self._database.read(_BY_NUMBER, federation=federation, number=number))

    def of(self, federation: str, *, state: RoundState | None = None, since: int = 0) -> list[Round]:
        """Return the rounds of a federation from number `since` on, perhaps only those in a state; in order."""
        statement = _OF_FEDERATION.where(rounds.c.number >= since).order_by(rounds.c.number)
        if state is not None:
            statement = statement.where(rounds.c.state == state)
        return records(Round, self._database.read(statement, federation=federation))

    def latest(self, federation: str) -> Round | None:
        """Return the round with the highest number."""
        return first_record(Round, self._database.read(_LATEST, federation=federation))

    def _add_work(self, connection: Connection, further: Sequence[Task], allowed: Sequence[Artifact]) -> None:
        put_artifacts(connection, self._database, allowed)
        if further:
            connection.execute(insert(tasks), [fields_of(task) for task in further])
            connection.execute(_NEWEST, [{"owner": task.device, "task": task.id} for task in further])


def _is(federation: str, number: int, state: RoundState) -> ColumnElement[bool]:
    return and_(rounds.c.federation == federation, rounds.c.number == number, rounds.c.state == state)
