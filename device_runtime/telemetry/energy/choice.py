"""Which source of energy readings this machine has: the most trusted one, or the estimate."""

from collections.abc import Callable
from pathlib import Path

from device_runtime.telemetry.commands import Command, run
from device_runtime.telemetry.energy import battery, hwmon, jetson, pmic, rapl
from device_runtime.telemetry.energy.estimate import CpuTimeEstimate, watts_per_core
from device_runtime.telemetry.energy.source import EnergySource
from device_runtime.telemetry.system_files import ROOT

__all__ = ["choose"]

_BEST_FIRST: tuple[Callable[[Path, Command], EnergySource | None], ...] = (
    pmic.find,
    hwmon.find,
    jetson.find,
    rapl.find,
    battery.find,
)


def choose(root: Path = ROOT, *, run: Command = run) -> EnergySource:
    """The best source there is now. Choose again for every round: a battery is one only until it is plugged in."""
    for find in _BEST_FIRST:
        source = find(root, run)
        if source is not None:
            return source
    return CpuTimeEstimate(watts_per_core())
