"""What workers share through the database: leases."""

from sqlalchemy import delete, or_

from coordinator.storage.database import Database
from coordinator.storage.tables import leases

__all__ = ["WorkerStore"]

_READY = "ready"


class WorkerStore:
    """Leases in the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def take_lease(self, name: str, owner: str, *, now: float, seconds: float) -> bool:
        """Take or renew a lease until `now + seconds`; return False if another worker holds it."""
        new = self._database.insert(leases)
        take = new.on_conflict_do_update(
            index_elements=[leases.c.name],
            set_={"owner": new.excluded.owner, "until": new.excluded.until},
            # A lease that ends much later than any lease can was taken before a clock was set back. "Much later":
            # this call may have waited for the writer's lock while the owner renewed its lease.
            where=or_(leases.c.owner == owner, leases.c.until <= now, leases.c.until > now + 3 * seconds),
        ).returning(leases.c.owner)
        values = {"name": name, "owner": owner, "until": now + seconds}
        return self._database.write(lambda connection: connection.execute(take, values).first() is not None)

    def note_alive(self, owner: str, now: float) -> None:
        """Note which worker was last asked whether it is ready: a small change that nobody reads."""
        new = self._database.insert(leases)
        note = new.on_conflict_do_update(
            index_elements=[leases.c.name], set_={"owner": new.excluded.owner, "until": new.excluded.until}
        )
        values = {"name": _READY, "owner": owner, "until": now}
        self._database.write(lambda connection: connection.execute(note, values) and None)

    def release_lease(self, name: str, owner: str) -> None:
        """Let another worker take the lease at once. Do nothing if `owner` does not hold it."""
        drop = delete(leases).where(leases.c.name == name, leases.c.owner == owner)
        self._database.write(lambda connection: connection.execute(drop) and None)
