"""What rounds teach about devices: how far from its prediction each one was, for the next plan.

Noted when an update is accepted or a task refused, and written to the database once a second for all devices: a lost
note costs nothing but a plan that is a little worse. With several workers, each knows what it saw last.
"""

import threading
from collections import OrderedDict

from coordinator.storage.records import Device
from edgefl.planning import Correction, corrected, refused
from edgefl.values import Prediction, Reason, Telemetry, dumps, loads

__all__ = ["Corrections"]

_MOST = 8192


class Corrections:
    """The corrections of devices that were heard of lately."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Correction] = OrderedDict()
        self._new: dict[str, Correction] = {}
        self._lock = threading.Lock()

    def note_round(self, device: Device, predicted: Prediction, telemetry: Telemetry) -> None:
        """A device's round took this, where that was predicted."""
        with self._lock:
            self._enter(device.id, corrected(self._before(device), predicted, telemetry))

    def note_refusal(self, device: Device, reason: Reason) -> None:
        """A device would not do a task."""
        with self._lock:
            self._enter(device.id, refused(self._before(device), reason))

    def of(self, device: Device) -> Correction:
        """Return what is known of a device."""
        with self._lock:
            return self._before(device)

    def take(self) -> dict[str, str]:
        """Return what was noted since the last call, to be entered in the database."""
        with self._lock:
            new, self._new = self._new, {}
        return {device: dumps(correction) for device, correction in new.items()}

    def _before(self, device: Device) -> Correction:
        known = self._known.get(device.id)
        if known is not None:
            return known
        return Correction() if device.correction is None else loads(Correction, device.correction)

    def _enter(self, device: str, correction: Correction) -> None:
        self._known[device] = self._new[device] = correction
        self._known.move_to_end(device)
        while len(self._known) > _MOST:
            self._known.popitem(last=False)
