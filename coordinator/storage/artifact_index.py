"""Artifacts in the database: which bodies devices may download, and which bodies are no longer needed."""

from collections.abc import Callable, Collection, Iterable, Sequence

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    bindparam,
    case,
    delete,
    exists,
    or_,
    select,
    true,
    union_all,
    update,
)

from coordinator.storage.database import Database
from coordinator.storage.plan_json import digests_in
from coordinator.storage.records import OVER, Artifact, RoundState, TaskState
from coordinator.storage.row_mapping import chunks, columns_of, fields_of, first_record
from coordinator.storage.tables import artifacts, devices, federations, rounds, tasks

__all__ = ["ArtifactIndex", "put_artifacts"]

_BY_DIGEST = select(*columns_of(artifacts, Artifact)).where(
    artifacts.c.federation == bindparam("federation"), artifacts.c.digest == bindparam("digest")
)
_DROP = delete(artifacts).where(
    artifacts.c.federation == bindparam("federation"), artifacts.c.digest.in_(bindparam("digests", expanding=True))
)
_KEPT = select(tasks.c.id).where(tasks.c["update"].in_(bindparam("digests", expanding=True)), tasks.c.body_kept)
_FORGET = update(tasks).where(tasks.c.id == bindparam("task")).values(body_kept=False)
_NOT_AGGREGATED = exists().where(
    rounds.c.federation == tasks.c.federation,
    rounds.c.number == tasks.c.counted_in,
    rounds.c.state != RoundState.DONE,
)
_NEEDED_BY = or_(tasks.c.state == TaskState.OPEN, _NOT_AGGREGATED)
"""Tasks whose plan and first model are still needed."""
# A round that is done starts from what the round before it ended with, which is kept there or not at all.
_STARTS = or_(rounds.c.number == 0, rounds.c.state != RoundState.DONE)
_REFERENCES = union_all(
    *(
        select(column).where(column.in_(bindparam("digests", expanding=True)), condition)
        for column, condition in (
            (artifacts.c.digest, true()),
            (rounds.c.model, _STARTS),
            (rounds.c.state_arrays, _STARTS),
            (rounds.c.next_model, rounds.c.model_kept),
            (rounds.c.next_state_arrays, rounds.c.model_kept),
            (federations.c.bundle, true()),
            (devices.c.mask_body, true()),
        )
    )
)


class ArtifactIndex:
    """The artifacts of the database, and which update bodies the blob store still holds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, artifacts: Sequence[Artifact]) -> None:
        """Allow downloads. An artifact that exists stays, for the later of the two rounds."""
        self._database.write(lambda connection: put_artifacts(connection, self._database, artifacts))

    def get(self, federation: str, digest: str) -> Artifact | None:
        """Return what the devices of a federation may download under this digest."""
        return first_record(Artifact, self._database.read(_BY_DIGEST, federation=federation, digest=digest))

    def drop(self, federation: str, *, before_round: int, kinds: Collection[str]) -> list[str]:
        """Forget the artifacts of these kinds of earlier rounds, except those named by a task of the federation that is
        open, or whose update counts in a round that is not DONE.

        Return the digests that nothing refers to any more in any federation (no artifact, no round's model or arrays,
        no bundle, no device's mask).
        """
        plans = select(tasks.c.plan).where(tasks.c.federation == federation, _NEEDED_BY)
        old = (
            select(artifacts.c.digest)
            .where(
                artifacts.c.federation == federation,
                artifacts.c.round < before_round,
                artifacts.c.kind.in_(list(kinds)),
            )
            .order_by(artifacts.c.digest)
            .with_for_update()
        )

        def work(connection: Connection) -> list[str]:
            found = connection.execute(old).scalars().all()
            needed = digests_in(connection.execute(plans).scalars()) if found else set()
            dropped = [digest for digest in found if digest not in needed]
            for chunk in chunks(dropped):
                connection.execute(_DROP, {"federation": federation, "digests": chunk})
            referenced = _referenced(connection, dropped)
            return [digest for digest in dropped if digest not in referenced]

        return self._database.write(work)

    def drop_models(self, federation: str, numbers: Collection[int], drop: Callable[[Collection[str]], None]) -> None:
        """Note that the models which these DONE rounds ended with are no longer kept, and `drop` their bodies, unless
        something else refers to them or a task still needs them: one of the next round that is open, or whose update
        counts in a round that is not DONE.

        Bodies are dropped before the transaction ends, so that nobody names one meanwhile. If it then fails, the models
        are dropped again the next time.
        """
        starts = select(tasks.c.round).distinct().where(tasks.c.federation == federation, _NEEDED_BY)
        wanted = [rounds.c.federation == federation, rounds.c.state == RoundState.DONE, rounds.c.model_kept]

        def work(connection: Connection) -> None:
            self._database.lock_models(connection)
            needed = {number - 1 for number in connection.execute(starts).scalars()}
            chosen = [*wanted, rounds.c.number.in_(sorted(set(numbers) - needed))]
            bodies = select(rounds.c.next_model, rounds.c.next_state_arrays).where(*chosen)
            digests = sorted({body for row in connection.execute(bodies) for body in row if body is not None})
            connection.execute(update(rounds).where(*chosen).values(model_kept=False))
            referenced = _referenced(connection, digests)
            drop([digest for digest in digests if digest not in referenced])

        self._database.write(work)

    def unneeded_updates(self, federation: str, *, before_round: int) -> list[str]:
        """Return the digests of update bodies that count only in rounds before this one that are DONE, or never will be
        because their federation is over. Forgotten ones are left out."""
        other = tasks.alias()
        settled = (tasks.c.federation == federation) & (tasks.c.counted_in < before_round) & _is_settled(tasks)
        counts_elsewhere = exists().where(
            other.c["update"] == tasks.c["update"],
            other.c.body_kept,
            or_(
                other.c.federation != federation,
                other.c.counted_in >= before_round,
                ~_is_settled(other),
            ),
        )
        statement = select(tasks.c["update"]).distinct().where(tasks.c.body_kept, settled, ~counts_elsewhere)
        return [row[0] for row in self._database.read(statement.order_by(tasks.c["update"]))]

    def forget_updates(self, digests: Collection[str]) -> None:
        """Note in the tasks that these bodies are gone. `update` stays: a repeated upload is still ALREADY."""

        def work(connection: Connection) -> None:
            found: list[str] = []
            for chunk in chunks(sorted(set(digests))):
                found += connection.execute(_KEPT, {"digests": chunk}).scalars()
            if found:
                connection.execute(_FORGET, [{"task": task} for task in sorted(found)])

        self._database.write(work)


def _is_settled(counted: FromClause) -> ColumnElement[bool]:
    """Return whether the round that a task counts in is done, or never will be."""
    done = exists().where(
        rounds.c.federation == counted.c.federation,
        rounds.c.number == counted.c.counted_in,
        rounds.c.state == RoundState.DONE,
    )
    over = exists().where(federations.c.id == counted.c.federation, federations.c.state.in_(OVER))
    return or_(done, over)


def put_artifacts(connection: Connection, database: Database, further: Iterable[Artifact]) -> None:
    """Allow downloads. An artifact that exists stays, for the later of the two rounds."""
    merged: dict[tuple[str, str], Artifact] = {}
    for artifact in further:
        place = (artifact.federation, artifact.digest)
        before = merged.get(place)
        if before is None or (before.round is not None and (artifact.round is None or artifact.round > before.round)):
            merged[place] = artifact
    if not merged:
        return
    statement = database.insert(artifacts)
    new = statement.excluded.round
    lasting = case((or_(artifacts.c.round.is_(None), new.is_(None)), None), else_=new)
    statement = statement.on_conflict_do_update(
        index_elements=[artifacts.c.federation, artifacts.c.digest],
        set_={"round": lasting},
        where=or_(artifacts.c.round < new, new.is_(None)),
    )
    connection.execute(statement, [fields_of(merged[place]) for place in sorted(merged)])


def _referenced(connection: Connection, digests: Sequence[str]) -> set[str]:
    """Return the digests that something still refers to."""
    found: set[str] = set()
    for chunk in chunks(digests):
        found.update(row[0] for row in connection.execute(_REFERENCES, {"digests": chunk}))
    return found
