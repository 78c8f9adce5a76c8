"""The coordinator's database, one attribute per kind of record.

Every method of every part is one transaction, and its changes are durable when it returns. Races between workers are
decided here and nowhere else: a method that changes a state names the state it starts from, and returns whether it was
the one that changed it. So a round is closed once and done once, and an accepted update counts in the round that it
was accepted into.

Methods may be called from several threads.
"""

from coordinator.storage.artifact_index import ArtifactIndex
from coordinator.storage.audit_log import AuditLog
from coordinator.storage.database import Database
from coordinator.storage.device_store import DeviceStore
from coordinator.storage.federation_store import FederationStore
from coordinator.storage.join_key_store import JoinKeyStore
from coordinator.storage.program_store import ProgramStore
from coordinator.storage.round_store import RoundStore
from coordinator.storage.task_store import TaskStore
from coordinator.storage.token_store import TokenStore
from coordinator.storage.upload_store import UploadStore
from coordinator.storage.worker_store import WorkerStore

__all__ = ["Store"]


class Store:
    """Everything that the coordinator remembers, apart from blobs. `coordinator.storage.open` builds it."""

    __slots__ = (
        "_database",
        "artifacts",
        "audit",
        "devices",
        "federations",
        "keys",
        "programs",
        "rounds",
        "tasks",
        "tokens",
        "uploads",
        "workers",
    )

    def __init__(self, database: Database) -> None:
        self._database = database
        self.federations = FederationStore(database)
        self.rounds = RoundStore(database)
        self.tasks = TaskStore(database)
        self.uploads = UploadStore(database)
        self.devices = DeviceStore(database)
        self.keys = JoinKeyStore(database)
        self.artifacts = ArtifactIndex(database)
        self.programs = ProgramStore(database)
        self.workers = WorkerStore(database)
        self.tokens = TokenStore(database)
        self.audit = AuditLog(database)

    def check_writable(self, worker: str, now: float) -> None:
        """Try to change something. Raise an error if that fails."""
        self._database.check_files()
        self.workers.note_alive(worker, now)

    def close(self) -> None:
        """Close all connections to the database."""
        self._database.close()
