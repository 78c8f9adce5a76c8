"""Join keys in the database."""

from sqlalchemy import Connection, bindparam, insert, select, update

from coordinator.storage.audit_log import record
from coordinator.storage.database import Database
from coordinator.storage.records import COORDINATOR, Actor, JoinKey
from coordinator.storage.row_mapping import columns_of, fields_of, first_record, records
from coordinator.storage.tables import keys

__all__ = ["KEY_BY_HASH", "JoinKeyStore"]

KEY_BY_HASH = select(*columns_of(keys, JoinKey)).where(keys.c.hash == bindparam("hash"))
_OF_FEDERATION = (
    select(*columns_of(keys, JoinKey))
    .where(keys.c.federation == bindparam("federation"))
    .order_by(keys.c.created_at, keys.c.id)
)


class JoinKeyStore:
    """The join keys of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, key: JoinKey, *, by: Actor = COORDINATOR) -> None:
        """Add a key to its federation, which must exist."""

        def work(connection: Connection) -> None:
            connection.execute(insert(keys), fields_of(key))
            about = {"label": key.label, "most_uses": key.most_uses, "expires_at": key.expires_at}
            record(connection, key.created_at, by, "key.create", key.id, federation=key.federation, **about)

        self._database.write(work)

    def of(self, federation: str) -> list[JoinKey]:
        """Return the keys of a federation, oldest first."""
        return records(JoinKey, self._database.read(_OF_FEDERATION, federation=federation))

    def by_hash(self, key_hash: str) -> JoinKey | None:
        """Return the key with this hash, whether or not it is still valid."""
        return first_record(JoinKey, self._database.read(KEY_BY_HASH, hash=key_hash))

    def revoke(self, federation: str, key: str, at: float, *, by: Actor = COORDINATOR) -> bool:
        """Revoke a key; return False if it does not exist or is already revoked. The devices that used it stay."""
        revoke = (
            update(keys)
            .where(keys.c.federation == federation, keys.c.id == key, keys.c.revoked_at.is_(None))
            .values(revoked_at=at)
        )

        def work(connection: Connection) -> bool:
            if not connection.execute(revoke).rowcount:
                return False
            record(connection, at, by, "key.revoke", key, federation=federation)
            return True

        return self._database.write(work)
