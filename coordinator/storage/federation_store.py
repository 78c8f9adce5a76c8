"""Federations in the database."""

from collections.abc import Collection

from sqlalchemy import Connection, bindparam, select, update

from coordinator.storage.audit_log import record
from coordinator.storage.database import Database
from coordinator.storage.records import COORDINATOR, OVER, Actor, Federation, FederationState, RoundState
from coordinator.storage.row_mapping import columns_of, fields_of, first_record, records
from coordinator.storage.tables import federations, rounds, tasks
from coordinator.storage.task_endings import expire_open

__all__ = ["FederationStore", "lock_federation"]

_ALL = select(*columns_of(federations, Federation))
_BY_ID = _ALL.where(federations.c.id == bindparam("id"))
_ENDED = select(federations.c.id).where(federations.c.state.in_(OVER))


class FederationStore:
    """The federations of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, federation: Federation, *, by: Actor = COORDINATOR) -> bool:
        """Add a federation; return False if one with this id exists."""
        statement = self._database.insert(federations).on_conflict_do_nothing().returning(federations.c.id)

        def work(connection: Connection) -> bool:
            if connection.execute(statement, fields_of(federation)).first() is None:
                return False
            record(connection, federation.created_at, by, "federation.create", federation.id, bundle=federation.bundle)
            return True

        return self._database.write(work)

    def get(self, federation: str) -> Federation | None:
        """Return a federation by its id."""
        return first_record(Federation, self._database.read(_BY_ID, id=federation))

    def all(self) -> list[Federation]:
        """Return all federations, oldest first."""
        return records(Federation, self._database.read(_ALL.order_by(federations.c.created_at, federations.c.id)))

    def ended(self) -> set[str]:
        """Return the ids of those that are finished or aborted."""
        return {row[0] for row in self._database.read(_ENDED)}

    def move(
        self,
        federation: str,
        to: FederationState,
        *,
        since: Collection[FederationState],
        at: float,
        reason: str | None = None,
        by: Actor = COORDINATOR,
    ) -> bool:
        """Change the state of a federation; return False if it is not in one of `since`.

        Aborting and finishing expire open tasks without counting them as failures of their devices.
        """
        move = (
            update(federations)
            .where(federations.c.id == federation, federations.c.state.in_(list(since)))
            .values(state=to, reason=reason, changed_at=at)
        )

        def work(connection: Connection) -> bool:
            if not connection.execute(move).rowcount:
                return False
            if to in OVER:
                expire_open(connection, tasks.c.federation == federation, at=at)
            record(connection, at, by, f"federation.{_verb(to, since)}", federation, reason=reason)
            return True

        return self._database.write(work)

    def set_reason(self, federation: str, reason: str | None) -> None:
        """Note, for the operator, why a federation does nothing."""
        note = update(federations).where(federations.c.id == federation).values(reason=reason)
        self._database.write(lambda connection: connection.execute(note) and None)

    def set_deadline(
        self,
        federation: str,
        seconds: float,
        *,
        before: float | None,
        later: float,
        at: float,
        closes_at: float | None = None,
        by: Actor = COORDINATOR,
    ) -> bool:
        """Set how long the rounds of a federation last, and close the open round at `closes_at` or else `later` seconds
        later (below zero: earlier). Return False if the deadline is no longer `before`."""
        known = federations.c.deadline.is_(None) if before is None else federations.c.deadline == before
        change = update(federations).where(federations.c.id == federation, known).values(deadline=seconds)
        shift = (
            update(rounds)
            .where(rounds.c.federation == federation, rounds.c.state == RoundState.OPEN)
            .values(deadline_at=rounds.c.deadline_at + later if closes_at is None else closes_at)
        )

        def work(connection: Connection) -> bool:
            if not connection.execute(change).rowcount:
                return False
            connection.execute(shift)
            record(connection, at, by, "federation.deadline", federation, seconds=seconds, before=before)
            return True

        return self._database.write(work)


def _verb(to: FederationState, since: Collection[FederationState]) -> str:
    if to is FederationState.RUNNING:
        return "start" if FederationState.CREATED in since else "resume"
    return {FederationState.PAUSED: "pause", FederationState.FINISHED: "finish"}.get(to, "abort")


def lock_federation(connection: Connection, federation: str) -> FederationState | None:
    """Return the state of a federation, and lock it until the transaction ends."""
    statement = select(federations.c.state).where(federations.c.id == federation)
    return connection.execute(statement.with_for_update(key_share=True)).scalar()
