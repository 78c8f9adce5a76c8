"""How warm the processor is, and what a round did to it.

Linux shows temperatures as thermal zones, each with a type that its maker chose. Zones of the processor are wanted; a
battery's or a radio's temperature in their place would mislead.
"""

import re
from pathlib import Path

from device_runtime.telemetry.commands import Command, run
from device_runtime.telemetry.system_files import ROOT, found, number_of, text_of
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
    """The temperature of the processor: the hottest of the zones that fit best. None where there is none."""
    zones = [(text_of(zone / "type") or "", zone) for zone in found(root, "sys/class/thermal/thermal_zone*")]
    for wanted in _BEST_FIRST:
        readings = [number_of(zone / "temp") for kind, zone in zones if wanted.search(kind)]
        degrees = [reading / 1000 for reading in readings if reading is not None and reading // 1000 in _PLAUSIBLE]
        if degrees:
            return max(degrees)
    return None


class ThermalWatch:
    """Watches from when it is made until `stop`, which gives the `Thermal`, or None where the system shows nothing."""

    def __init__(self, root: Path = ROOT, *, run: Command = run) -> None:
        self._root = root
        self._run = run
        self._celsius = celsius(root)
        self._throttle = throttle_state(root, run)

    def stop(self) -> Thermal | None:
        """Look once more."""
        end = celsius(self._root)
        throttled = throttled_between(self._throttle, throttle_state(self._root, self._run))
        if self._celsius is None and end is None and throttled is None:
            return None
        return Thermal(start_celsius=self._celsius, end_celsius=end, throttled=throttled)
