"""The energy of one round, and the power of a device, as the values that leave it.

Called by the recorder and by the profiler. An instrument that fails in the middle of a round is replaced by the
estimate, under the estimate's own label.
"""

import time
from collections.abc import Callable
from pathlib import Path

from device_runtime.telemetry.energy.estimate import CpuTimeEstimate, watts_per_core
from device_runtime.telemetry.energy.source import Amount, EnergySource
from device_runtime.telemetry.energy.supplies import plugged
from device_runtime.telemetry.system_files import ROOT
from edgefl.values import Energy, PowerSource, Provenance

__all__ = ["EnergyMeter", "idle_watts", "power_source"]


def idle_watts(source: EnergySource, seconds: float, *, sleep: Callable[[float], None] = time.sleep) -> float | None:
    """The power that the source shows while this process sleeps for so long; None where it cannot tell.

    An estimate from CPU time knows nothing of a device that does nothing.
    """
    if source.label.provenance is Provenance.ESTIMATED or seconds <= 0:
        return None
    measurement = source.start()
    try:
        sleep(seconds)
    finally:  # whoever interrupts the wait must not leave a thread behind
        amount = measurement.stop()
    return None if amount is None else amount.watts


def power_source(source: EnergySource, *, idle_watts: float | None, busy: Amount | None) -> PowerSource:
    """What a device profile says of its power: the source, its idle watts, and what it showed under load."""
    label = source.label
    return PowerSource(
        source=label.source,
        scope=label.scope,
        provenance=label.provenance,
        idle_watts=idle_watts,
        busy_watts=None if busy is None else busy.watts,
    )


class EnergyMeter:
    """Measures from when it is made until `stop`, which gives the `Energy`."""

    def __init__(self, source: EnergySource, *, root: Path = ROOT, idle_watts: float | None = None) -> None:
        self._source = source
        self._root = root
        self._idle_watts = idle_watts
        self._plugged = plugged(root)
        self._estimate = CpuTimeEstimate(watts_per_core())
        self._estimating = self._estimate.start()
        self._measuring = source.start()

    def stop(self) -> Energy:
        """End the measurement."""
        source, idle, amount = self._source, self._idle_watts, self._measuring.stop()
        if amount is None:
            source, idle, amount = self._estimate, None, self._estimating.stop()
        label, still_plugged = source.label, plugged(self._root)
        return Energy(
            joules=amount.joules,
            source=label.source,
            scope=label.scope,
            provenance=label.provenance,
            sample_hertz=amount.sample_hertz,
            idle_watts=idle,
            plugged=still_plugged if still_plugged == self._plugged else None,
        )
