"""The energy of one task, and the power of a device, as the values that are reported.

The recorder and the profiler use it. If an instrument fails during a task, the estimate replaces it, under its own
label.
"""

import time
from collections.abc import Callable
from pathlib import Path

from device_runtime.telemetry.energy.cpu_time_estimate import CpuTimeEstimate, watts_per_core
from device_runtime.telemetry.energy.energy_source import EnergyAmount, EnergySource
from device_runtime.telemetry.energy.power_supplies import plugged
from device_runtime.telemetry.sysfs import ROOT
from edgefl.values import Energy, PowerSource, Provenance

__all__ = ["EnergyMeter", "idle_watts", "power_source"]


def idle_watts(source: EnergySource, seconds: float, *, sleep: Callable[[float], None] = time.sleep) -> float | None:
    """Return the power that the source shows while this process sleeps for `seconds`; None if it cannot tell.

    An estimate from CPU time knows nothing of an idle device.
    """
    if source.label.provenance is Provenance.ESTIMATED or seconds <= 0:
        return None
    measurement = source.start()
    try:
        sleep(seconds)
    finally:  # an interrupted wait must not leave a thread behind
        amount = measurement.stop()
    return None if amount is None else amount.watts


def power_source(source: EnergySource, *, idle_watts: float | None, busy: EnergyAmount | None) -> PowerSource:
    """Return the power section of a device profile: the source, its idle watts, and its watts under load."""
    label = source.label
    return PowerSource(
        source=label.source,
        scope=label.scope,
        provenance=label.provenance,
        idle_watts=idle_watts,
        busy_watts=None if busy is None else busy.watts,
    )


class EnergyMeter:
    """Measures from its creation until `stop`, which returns the `Energy`."""

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
