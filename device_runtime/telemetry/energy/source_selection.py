"""Chooses this machine's source of energy readings: the most trusted one available, or else the estimate."""

from collections.abc import Callable
from pathlib import Path

from device_runtime.telemetry.energy import battery, hwmon, pmic, rapl
from device_runtime.telemetry.energy.cpu_time_estimate import CpuTimeEstimate, watts_per_core
from device_runtime.telemetry.energy.energy_source import EnergySource
from device_runtime.telemetry.sysfs import ROOT
from device_runtime.telemetry.system_commands import Command, run

__all__ = ["choose_energy_source"]

_BEST_FIRST: tuple[Callable[[Path, Command], EnergySource | None], ...] = (
    pmic.find,
    hwmon.find,
    hwmon.find_jetson,
    rapl.find,
    battery.find,
)


def choose_energy_source(root: Path = ROOT, *, run: Command = run) -> EnergySource:
    """Return the best source available now. Choose again for every task: a battery counts only while unplugged."""
    for find in _BEST_FIRST:
        source = find(root, run)
        if source is not None:
            return source
    return CpuTimeEstimate(watts_per_core())
