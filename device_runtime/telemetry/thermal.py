"""The temperature of the processor, and its change during a task.

Linux shows temperatures as thermal zones, each with a type chosen by its vendor. Only zones of the processor count; the
temperature of a battery or a radio would mislead.
"""

import re
from pathlib import Path

from device_runtime.telemetry.sysfs import ROOT, find_paths, read_int, read_text
from device_runtime.telemetry.system_commands import Command, run
from device_runtime.telemetry.throttling import throttle_state, throttled_between
from edgefl.values import Thermal

__all__ = ["ThermalWatch", "celsius"]

_BEST_FIRST = [
    re.compile(r"x86_pkg_temp", re.IGNORECASE),
    re.compile(r"cpu", re.IGNORECASE),  # cpu-thermal (Raspberry Pi), CPU-therm (Jetson), mtktscpu, cpu-0-0-usr
    re.compile(r"soc|tsens", re.IGNORECASE),
    re.compile(r"acpitz", re.IGNORECASE),
]
_PLAUSIBLE = range(-40, 151)
"""Zones that are switched off show 0 K and other nonsense."""


def celsius(root: Path = ROOT) -> float | None:
    """Return the temperature of the processor: the hottest of the best-matching zones. None if there is none."""
    zones = [(read_text(zone / "type") or "", zone) for zone in find_paths(root, "sys/class/thermal/thermal_zone*")]
    for wanted in _BEST_FIRST:
        readings = [read_int(zone / "temp") for kind, zone in zones if wanted.search(kind)]
        degrees = [reading / 1000 for reading in readings if reading is not None and reading // 1000 in _PLAUSIBLE]
        if degrees:
            return max(degrees)
    return None


class ThermalWatch:
    """Watches from its creation until `stop`, which returns the `Thermal`, or None where the system shows nothing."""

    def __init__(self, root: Path = ROOT, *, run: Command = run) -> None:
        self._root = root
        self._run = run
        self._celsius = celsius(root)
        self._throttle = throttle_state(root, run)

    def stop(self) -> Thermal | None:
        """Read the sensors again and return the result."""
        end = celsius(self._root)
        throttled = throttled_between(self._throttle, throttle_state(self._root, self._run))
        if self._celsius is None and end is None and throttled is None:
            return None
        return Thermal(start_celsius=self._celsius, end_celsius=end, throttled=throttled)
