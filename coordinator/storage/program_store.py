"""Programs in the database: which ones federations have, and which ones somebody should compile.

    WANTED ----- a worker takes it, with a lease ----> COMPILING ----- it delivers ----> READY
       ^                                                 |   |
       |   the worker gives it back, or its lease ends   |   |
       +-------------------------------------------------+   +-- the third failure or fifth lost lease ---> FAILED

Whoever delivers first wins, with a lease or without. What is READY stays, until an operator wants it compiled again.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, and_, bindparam, case, delete, func, not_, or_, select, update

from coordinator.storage.artifact_index import put_artifacts
from coordinator.storage.audit_log import record as record_audit
from coordinator.storage.database import Database
from coordinator.storage.records import COORDINATOR, Actor, Artifact, ProgramRecord, ProgramState
from coordinator.storage.row_mapping import columns_of, fields_of, first_record, record, records
from coordinator.storage.tables import programs
from edgefl.values import digest_of

__all__ = ["MOST_LOST_LEASES", "MOST_PROGRAMS", "MOST_TRIES", "ProgramStore", "program_artifacts"]

MOST_PROGRAMS = 500
"""Programs of a federation that are not ready: further ones replace those that nobody has wanted for longest."""
MOST_TRIES = 3
MOST_LOST_LEASES = 5
"""Leases of a program that may end without a word from the worker: compiling it may be what ends the workers."""

_ALL = select(*columns_of(programs, ProgramRecord))
_OF_FEDERATION = _ALL.where(programs.c.federation == bindparam("federation"))
_ONE = _OF_FEDERATION.where(programs.c.key == bindparam("key"))
_READY_ANYWHERE = _ALL.where(
    programs.c.key.in_(bindparam("keys", expanding=True)), programs.c.state == ProgramState.READY
).order_by(programs.c.changed_at, programs.c.federation)
_PREDICTS = '"role":"infer"'
"""In the specification of a program that predicts: a device trains without one, but not without one that trains."""
_LOST = programs.c.takes - programs.c.tries
"""Leases of a program that is being compiled and that ended with neither a program nor a failure, the last included."""
_PENDING = (ProgramState.WANTED, ProgramState.COMPILING, ProgramState.FAILED)


class ProgramStore:
    """The programs of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, federation: str) -> list[ProgramRecord]:
        """Return the programs of a federation, ordered by key."""
        return records(
            ProgramRecord, self._database.read(_OF_FEDERATION.order_by(programs.c.key), federation=federation)
        )

    def get(self, federation: str, key: str) -> ProgramRecord | None:
        """Return a program by the key of its specification."""
        return first_record(ProgramRecord, self._database.read(_ONE, federation=federation, key=key))

    def ready(self, federation: str) -> list[str]:
        """Return the documents of the programs that a federation has, ordered by key."""
        statement = select(programs.c.program).where(_is(federation), programs.c.state == ProgramState.READY)
        return [row[0] for row in self._database.read(statement.order_by(programs.c.key))]

    def stamp(self, federation: str) -> tuple[int, float | None]:
        """Return how many programs are ready, and since when the last one is: it changes whenever one becomes ready."""
        statement = select(func.count(), func.max(programs.c.changed_at)).where(
            _is(federation), programs.c.state == ProgramState.READY
        )
        ((count, last),) = self._database.read(statement)
        return count, last

    def want(self, federation: str, specs: Mapping[str, str], *, at: float) -> bool:
        """Note that plans could have used these programs, by key; return whether one was found ready elsewhere.

        What another federation has is taken over. There is a limit, since devices decide with what they claim about
        themselves which programs are wanted.
        """
        if not specs:
            return False

        def work(connection: Connection) -> bool:
            known = set(connection.execute(select(programs.c.key).where(_is(federation))).scalars())
            new = sorted(specs.keys() - known)
            found = _found_elsewhere(connection, federation, new, at)
            self._add_ready(connection, found)
            missing = [key for key in new if key not in {one.key for one in found}][:MOST_PROGRAMS]
            _make_room(connection, federation, len(missing))
            added = [_wanted(federation, key, specs[key], at) for key in missing]
            if added:
                connection.execute(self._database.insert(programs).on_conflict_do_nothing(), added)
            again = and_(_is(federation), programs.c.key.in_(sorted(specs)), programs.c.state.in_(_PENDING))
            more = programs.c.demand + 1
            connection.execute(update(programs).where(again).values(wanted_at=at, demand=more))
            return bool(found)

        return self._database.write(work)

    def take(self, federation: str, worker: str, *, now: float, seconds: float) -> ProgramRecord | None:
        """Give a worker the next wanted program until `now + seconds`; None if there is none.

        A worker that holds one gets the same again. One that was taken less often comes first, so that a program which
        ends every worker does not keep them from the others, and after a few leases that ended nobody gets it; then one
        that trains before one that predicts, and what plans wanted most often.
        """
        over = _is_over(now, seconds)
        mine = and_(programs.c.worker == worker, not_(over))
        lost = and_(_is(federation), programs.c.state == ProgramState.COMPILING, over, _LOST >= MOST_LOST_LEASES)
        reason = f"{MOST_LOST_LEASES} workers ended while they compiled it"
        ended = {"state": ProgramState.FAILED, "reason": reason, "lease_until": None, "changed_at": now}
        open_ones = or_(
            programs.c.state == ProgramState.WANTED, and_(programs.c.state == ProgramState.COMPILING, or_(over, mine))
        )
        held = case((and_(programs.c.state == ProgramState.COMPILING, mine), 0), else_=1)
        predicts = case((programs.c.spec.contains(_PREDICTS), 1), else_=0)
        order = (held, programs.c.takes, predicts, programs.c.demand.desc(), programs.c.wanted_at, programs.c.key)
        find = _ALL.where(_is(federation), open_ones).order_by(*order).limit(1).with_for_update(skip_locked=True)

        def work(connection: Connection) -> ProgramRecord | None:
            connection.execute(update(programs).where(lost).values(ended))
            row = connection.execute(find.add_columns(held)).first()
            if row is None:
                return None
            *fields, others = row
            found, again = record(ProgramRecord, fields), not others
            news: dict[str, Any] = {
                "state": ProgramState.COMPILING,
                "worker": worker,
                "lease_until": now + seconds,
                "takes": found.takes + (not again),
                "changed_at": found.changed_at if again else now,
            }
            connection.execute(update(programs).where(_is(federation, found.key)).values(news))
            return record(ProgramRecord, (fields_of(found) | news).values())

        return self._database.write(work)

    def renew(self, federation: str, key: str, worker: str, *, now: float, seconds: float) -> bool:
        """Let a worker go on until `now + seconds`; return False if the program is no longer its own."""
        move = update(programs).where(_holds(federation, key, worker)).values(lease_until=now + seconds)
        return self._database.write(lambda connection: connection.execute(move).rowcount > 0)

    def give_back(self, federation: str, key: str, worker: str, *, at: float) -> bool:
        """Let others compile a program at once; return False if the worker does not hold it."""
        news: dict[str, Any] = {"state": ProgramState.WANTED, "worker": None, "lease_until": None, "changed_at": at}
        news["takes"] = programs.c.takes - 1
        move = update(programs).where(_holds(federation, key, worker)).values(news)
        return self._database.write(lambda connection: connection.execute(move).rowcount > 0)

    def fail(self, federation: str, key: str, worker: str, reason: str, *, at: float) -> ProgramState | None:
        """Note that a worker could not compile a program; return its state, or None if the worker does not hold it.

        After a few failures nobody tries it again.
        """

        def work(connection: Connection) -> ProgramState | None:
            found = connection.execute(_ALL.where(_holds(federation, key, worker)).with_for_update()).first()
            if found is None:
                return None
            state = ProgramState.FAILED if found.tries + 1 >= MOST_TRIES else ProgramState.WANTED
            news = {"state": state, "tries": found.tries + 1, "reason": reason, "lease_until": None, "changed_at": at}
            connection.execute(update(programs).where(_is(federation, key)).values(news))
            return state

        return self._database.write(work)

    def deliver(self, made: ProgramRecord, *, by: Actor = COORDINATOR) -> bool:
        """Make a program READY, whether or not it was wanted, and allow its downloads; its file is in the blob store.

        Return False, and change nothing, if it is ready already: the first one stays.
        """
        return self.deliver_all([made], by=by) == 1

    def deliver_all(self, made: Sequence[ProgramRecord], *, by: Actor = COORDINATOR, audited: bool = True) -> int:
        """Make programs READY as `deliver` does, all in one transaction; return how many became so."""

        def work(connection: Connection) -> int:
            added = self._add_ready(connection, made)
            for one in made if audited else ():
                if one.key in added:
                    about = {"federation": one.federation, "worker": one.worker, "pte": _document(one)["pte"]}
                    record_audit(connection, one.changed_at, by, "program.upload", one.key, **about)
            return len(added)

        return self._database.write(work)

    def want_again(self, federation: str, key: str | None = None, *, at: float, by: Actor = COORDINATOR) -> int:
        """Let a program be compiled again that failed or that is no good; without a key, all that failed. Return how
        many there are."""
        states = [ProgramState.FAILED] if key is None else [ProgramState.FAILED, ProgramState.READY]
        chosen = and_(_is(federation, key), programs.c.state.in_(states))
        news = {
            "state": ProgramState.WANTED,
            "tries": 0,
            "takes": 0,
            "reason": None,
            "program": None,
            "worker": None,
            "lease_until": None,
            "changed_at": at,
            "wanted_at": at,
        }

        def work(connection: Connection) -> int:
            count = connection.execute(update(programs).where(chosen).values(news)).rowcount
            if count:
                record_audit(connection, at, by, "program.retry", key or federation, federation=federation, count=count)
            return count

        return self._database.write(work)

    def _add_ready(self, connection: Connection, made: Sequence[ProgramRecord]) -> set[str]:
        """Add programs that are ready, or make them so; return the keys of those that were not."""
        new = self._database.insert(programs)
        news = {name: new.excluded[name] for name in ("state", "changed_at", "worker", "program", "reason")}
        add = new.on_conflict_do_update(
            index_elements=[programs.c.federation, programs.c.key],
            set_=news | {"lease_until": None},
            where=programs.c.state != ProgramState.READY,
        ).returning(programs.c.key)
        added: set[str] = set()
        for one in sorted(made, key=lambda one: one.key):
            if connection.execute(add, fields_of(one)).first() is not None:
                added.add(one.key)
        bodies = [body for one in made if one.key in added for body in program_artifacts(one)]
        put_artifacts(connection, self._database, bodies)
        return added


def program_artifacts(made: ProgramRecord) -> list[Artifact]:
    """Return what devices download of a program: its document, and its file. Every round may need them."""
    text, document = (made.program or "").encode(), _document(made)
    return [
        Artifact(federation=made.federation, digest=digest_of(text), kind="program", size=len(text)),
        Artifact(federation=made.federation, digest=document["pte"], kind="program_file", size=document["size"]),
    ]


def _document(made: ProgramRecord) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(made.program or "{}")
    return document


def _is(federation: str, key: str | None = None) -> Any:
    own = programs.c.federation == federation
    return own if key is None else and_(own, programs.c.key == key)


def _holds(federation: str, key: str, worker: str) -> Any:
    return and_(_is(federation, key), programs.c.state == ProgramState.COMPILING, programs.c.worker == worker)


def _is_over(now: float, seconds: float) -> Any:
    """A lease that ends much later than any lease can was taken before a clock was set back."""
    until = programs.c.lease_until
    return or_(until.is_(None), until <= now, until > now + 3 * seconds)


def _wanted(federation: str, key: str, spec: str, at: float) -> dict[str, Any]:
    state = ProgramState.WANTED
    one = ProgramRecord(federation=federation, key=key, spec=spec, state=state, wanted_at=at, changed_at=at)
    return fields_of(one)


def _found_elsewhere(connection: Connection, federation: str, keys: Sequence[str], at: float) -> list[ProgramRecord]:
    """Return these programs as other federations have them."""
    if not keys:
        return []
    found: dict[str, ProgramRecord] = {}
    for one in records(ProgramRecord, connection.execute(_READY_ANYWHERE, {"keys": list(keys)}).all()):
        news = {"federation": federation, "wanted_at": at, "changed_at": at, "demand": 0}
        found.setdefault(one.key, record(ProgramRecord, (fields_of(one) | news).values()))
    return list(found.values())


def _make_room(connection: Connection, federation: str, further: int) -> None:
    """Forget wanted programs that nobody has asked for in a long time, if there are too many."""
    pending = and_(_is(federation), programs.c.state.in_(_PENDING))
    count = connection.execute(select(func.count()).select_from(programs).where(pending)).scalar_one()
    excess = count + further - MOST_PROGRAMS
    if excess <= 0:
        return
    idle = and_(_is(federation), programs.c.state.in_([ProgramState.WANTED, ProgramState.FAILED]))
    oldest = select(programs.c.key).where(idle).order_by(programs.c.wanted_at, programs.c.key).limit(excess)
    keys = list(connection.execute(oldest).scalars())
    connection.execute(delete(programs).where(_is(federation), programs.c.key.in_(keys)))
