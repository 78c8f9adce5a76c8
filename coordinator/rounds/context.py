"""What one worker of the coordinator works with: database, blobs, a clock, and a bell for waiting devices.

Made once when the process starts, and given to everything. It knows no HTTP.
"""

import threading
import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from coordinator.rounds.corrections import Corrections
from coordinator.storage.blobs import Blobs
from coordinator.storage.repository import Repository
from coordinator.storage.store import Store

__all__ = ["Context"]


def _nobody(devices: Collection[str]) -> None:
    """Nobody waits."""


@dataclass(slots=True)
class Context:
    """One worker's surroundings."""

    store: Store
    blobs: Blobs
    now: Callable[[], float] = time.time
    """Seconds since 1970. Deadlines are kept in the database, so all workers need about the same clock."""
    started: float = field(init=False)
    """When this worker began."""
    worker: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Names this process among the workers."""
    tell: Callable[[Collection[str]], None] = _nobody
    """Called, from any thread, with the devices that have something new to hear."""
    library: Repository = field(init=False)
    corrections: Corrections = field(init=False)
    _handed: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.library = Repository(self.store, self.blobs, self.now)
        self.corrections = Corrections(self.store.devices.get, self.now)
        self.started = self.now()

    def note_handed(self, task: str, at: float) -> None:
        """A device got its task. Entered by and by: a wait for the disk for each would be too dear."""
        with self._lock:
            self._handed.setdefault(task, at)

    def take_handed(self) -> dict[str, float]:
        """Return what was noted since the last call, to be entered in the database."""
        with self._lock:
            handed, self._handed = self._handed, {}
        return handed
