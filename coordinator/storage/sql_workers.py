"""What workers tell each other through the database: who does what, and what is secret."""

from sqlalchemy import Connection, delete, or_, select

from coordinator.storage.database import Database
from coordinator.storage.tables import leases, secrets

__all__ = ["SqlWorkers"]


class SqlWorkers:
    """What `Store` says of workers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def take_lease(self, name: str, owner: str, *, now: float, seconds: float) -> bool:
        """Become, or stay, the one worker that does something."""
        new = self._database.insert(leases)
        take = new.on_conflict_do_update(
            index_elements=[leases.c.name],
            set_={"owner": new.excluded.owner, "until": new.excluded.until},
            # One that ends much later than any lease can was taken by a clock that was set back since. Much later:
            # this one may have waited for the writer's lock while the owner took its lease anew.
            where=or_(leases.c.owner == owner, leases.c.until <= now, leases.c.until > now + 3 * seconds),
        ).returning(leases.c.owner)
        values = {"name": name, "owner": owner, "until": now + seconds}
        return self._database.write(lambda connection: connection.execute(take, values).first() is not None)

    def drop_lease(self, name: str, owner: str) -> None:
        """Let another one do it; who does not hold it changes nothing."""
        drop = delete(leases).where(leases.c.name == name, leases.c.owner == owner)
        self._database.write(lambda connection: connection.execute(drop) and None)

    def secret(self, name: str, value: str) -> str:
        """Return the text of this name, which is `value` if there was none."""
        find = select(secrets.c.value).where(secrets.c.name == name)
        add = self._database.insert(secrets).on_conflict_do_nothing()

        def work(connection: Connection) -> str:
            connection.execute(add, {"name": name, "value": value})
            stored: str = connection.execute(find).scalar_one()
            return stored

        known = self._database.read(find)
        return known[0][0] if known else self._database.write(work)
