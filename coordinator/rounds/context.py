"""What one worker of the coordinator works with: database, blobs, a clock, and a way to wake waiting devices.

It is built once when the process starts, and passed to everything.
"""

import threading
import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from coordinator.rounds.corrections import Corrections
from coordinator.rounds.program_catalogue import ProgramCatalogues
from coordinator.storage.blobs import Blobs
from coordinator.storage.repository import Repository
from coordinator.storage.store import Store

__all__ = ["Context"]


def _wake_nobody(devices: Collection[str]) -> None:
    """Do nothing: no device waits."""


@dataclass(slots=True)
class Context:
    """What one worker works with."""

    store: Store
    blobs: Blobs
    now: Callable[[], float] = time.time
    """Return seconds since 1970. Deadlines are in the database, so the clocks of all workers must roughly agree."""
    started: float = field(init=False)
    """When this worker started."""
    worker: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Identifies this process among the workers."""
    wake: Callable[[Collection[str]], None] = _wake_nobody
    """Called, from any thread, with the devices that have a new task or whose federation is over."""
    repository: Repository = field(init=False)
    corrections: Corrections = field(init=False)
    programs: ProgramCatalogues = field(init=False)
    """Which compiled programs federations have."""
    _handed: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.repository = Repository(self.store, self.blobs, self.now)
        self.corrections = Corrections(self.store.devices.get, self.now)
        self.programs = ProgramCatalogues(self.store, self.repository, self.now)
        self.started = self.now()

    def note_handed(self, task: str, at: float) -> None:
        """Note that a device got its task. It is stored later: a wait for the disk for each would be too expensive."""
        with self._lock:
            self._handed.setdefault(task, at)

    def take_handed(self) -> dict[str, float]:
        """Return what was noted since the last call, to be stored in the database."""
        with self._lock:
            handed, self._handed = self._handed, {}
        return handed
