"""Corrections: how far each device was from its prediction, for the next plan.

They are noted when an update is accepted or a task refused, and written to the database once a second for all devices:
a lost note only makes a plan a little worse. Corrections fade, because a device that no longer gets tasks could never
show that it has recovered.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace

from coordinator.storage.records import CLOCK_SLACK, Device
from edgefl.errors import EdgeFLError
from edgefl.planning import Correction, corrected, faded, refused
from edgefl.values import Prediction, Reason, Telemetry, dumps, loads

__all__ = ["Corrections"]

_LOG = logging.getLogger(__name__)


class Corrections:
    """What was learned about devices. Takes a function that returns a device's newest record, and a clock."""

    def __init__(self, find: Callable[[str], Device | None], now: Callable[[], float]) -> None:
        self._find, self._now = find, now
        self._new: dict[str, Correction] = {}
        """Corrections that are not in the database yet."""
        self._lock = threading.Lock()

    def note_round(self, device: str, predicted: Prediction, telemetry: Telemetry, half_life: float) -> None:
        """Learn from what a device's round took, compared with what was predicted."""
        self._learn(device, half_life, lambda before: corrected(before, predicted, telemetry))

    def note_refusal(self, device: str, reason: Reason, half_life: float) -> None:
        """Learn from a refusal."""
        self._learn(device, half_life, lambda before: refused(before, reason))

    def of(self, device: Device, half_life: float) -> Correction:
        """Return the correction of a device whose record was just read. It halves in `half_life` seconds."""
        with self._lock:
            known = self._new.get(device.id) or _read(device)
        age = self._now() - known.learned_at
        # One from the future was noted before a clock was set back; its age is unknown.
        return faded(known, age / half_life) if age >= -CLOCK_SLACK else Correction()

    def forget(self, device: str) -> None:
        """Forget what was learned about a device: it was measured again, and its profile contains it now."""
        with self._lock:
            self._new[device] = Correction(learned_at=int(self._now()))

    def take(self) -> dict[str, str]:
        """Return what was noted since the last call, to be stored in the database."""
        with self._lock:
            new, self._new = self._new, {}
        return {device: dumps(correction) for device, correction in new.items()}

    def _learn(self, name: str, half_life: float, lesson: Callable[[Correction], Correction]) -> None:
        """Note a lesson. Nothing depends on it, so a failure is only logged."""
        try:
            device = self._find(name)
            if device is not None:
                learned = lesson(self.of(device, half_life))
                with self._lock:
                    self._new[name] = replace(learned, learned_at=int(self._now()))
        except Exception:
            _LOG.exception("a correction could not be noted")


def _read(device: Device) -> Correction:
    """Return the stored correction; one that another version wrote is ignored."""
    try:
        return Correction() if device.correction is None else loads(Correction, device.correction)
    except EdgeFLError:
        return Correction()
