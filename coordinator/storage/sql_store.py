"""The `Store` over SQLite or PostgreSQL, put together from one file a concern. `coordinator.storage.open` makes it."""

from coordinator.storage.database import Database
from coordinator.storage.sql_artifacts import SqlArtifacts
from coordinator.storage.sql_devices import SqlDevices
from coordinator.storage.sql_federations import SqlFederations
from coordinator.storage.sql_rounds import SqlRounds
from coordinator.storage.sql_tasks import SqlTasks
from coordinator.storage.sql_uploads import SqlUploads
from coordinator.storage.sql_workers import SqlWorkers

__all__ = ["SqlStore"]


class SqlStore(SqlFederations, SqlRounds, SqlTasks, SqlUploads, SqlDevices, SqlArtifacts, SqlWorkers):
    """Everything that the coordinator remembers, apart from blobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()
