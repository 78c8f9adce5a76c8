"""The power rails of NVIDIA's Jetson boards: INA3221 chips on the module.

Boards with a rail for the whole module (VDD_IN; POM_5V_IN on the first Nano) show the total there, and the other rails
are parts of it. AGX boards have no such rail: their parts are summed. The carrier board is not covered by either.
"""

from pathlib import Path

from device_runtime.telemetry.commands import Command, run
from device_runtime.telemetry.energy.hwmon import channels_of, is_tegra, source_of
from device_runtime.telemetry.energy.source import EnergySource
from device_runtime.telemetry.system_files import ROOT, found

__all__ = ["find"]

_PLACES = ("sys/bus/i2c/devices/*/hwmon/hwmon*", "sys/class/hwmon/hwmon*")


def find(root: Path = ROOT, run: Command = run) -> EnergySource | None:
    """The rails of the module, or None if this is no Jetson."""
    if not is_tegra(root):
        return None
    for place in _PLACES:
        channels = [channel for folder in found(root, place) for channel in channels_of(folder)]
        source = source_of(channels, kind="Jetson rail")
        if source is not None:
            return source
    return None
