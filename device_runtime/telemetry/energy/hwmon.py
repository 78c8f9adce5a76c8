"""INA power meters that Linux shows as hardware monitors: INA219, INA226 and relatives, INA3221.

A fitted meter does not say what it measures. A channel whose label names the input of the board covers the device, and
so does a lone meter, which was fitted to measure it. Several channels without such a label are added up, labelled as
parts of the package, and named one by one.

    ina219 and relatives   power1_input in microwatts, or in1_input (mV) x curr1_input (mA); in0 is the shunt
    ina3221                in1..in3_input (mV) x curr1..curr3_input (mA), in*_label; in4 and above are shunts and sums

NVIDIA's Jetson boards have INA3221 chips on the module. Boards with a rail for the whole module (VDD_IN; POM_5V_IN on
the first Nano) show the total there, and the other rails are parts of it. AGX boards have no such rail: their rails are
added up. Neither covers the carrier board.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from device_runtime.telemetry.energy.energy_source import EnergySource, SourceLabel
from device_runtime.telemetry.energy.power_sampling import PowerSampler
from device_runtime.telemetry.sysfs import ROOT, as_name, find_paths, read_int, read_text
from device_runtime.telemetry.system_commands import Command, run
from edgefl.values import Provenance, Scope

__all__ = ["Channel", "find", "find_jetson"]

_HERTZ = 10.0
_HWMON = "sys/class/hwmon/hwmon*"
_JETSON_HWMON = "sys/bus/i2c/devices/*/hwmon/hwmon*"
_SINGLE = re.compile(r"ina2(19|20|26|30|31|32|33|34|37|38|60)(\b|_)")
_TRIPLE = "ina3221"
_INPUTS = frozenset({"VDD_IN", "POM_5V_IN", "VIN", "V_IN", "IN", "INPUT", "DC_IN", "5V_IN", "12V_IN", "TOTAL"})


@dataclass(frozen=True, slots=True)
class Channel:
    """One measured line of a chip."""

    label: str
    power: Path | None
    volts: Path
    amperes: Path

    def watts(self) -> float | None:
        """Return the present power, or None if the chip does not answer."""
        microwatts = read_int(self.power) if self.power is not None else None
        if microwatts is not None:
            return microwatts * 1e-6
        millivolts, milliamperes = read_int(self.volts), read_int(self.amperes)
        return None if millivolts is None or milliamperes is None else millivolts * milliamperes * 1e-6


def _channels_of(folder: Path) -> list[Channel]:
    """Return the channels of the chip in a hwmon folder; none if it is not an INA chip or shows nothing."""
    chip = read_text(folder / "name") or ""
    if _SINGLE.match(chip):
        power, volts, amperes = (folder / f"{kind}1_input" for kind in ("power", "in", "curr"))
        label = read_text(folder / "label") or read_text(folder / "in1_label") or chip
        candidates = [Channel(label, power, volts, amperes)]
    elif chip == _TRIPLE:
        candidates = _triple(folder)
    else:
        candidates = []
    return [channel for channel in candidates if channel.watts() is not None]


def _triple(folder: Path) -> list[Channel]:
    channels = []
    for number in (1, 2, 3):
        label = read_text(folder / f"in{number}_label") or f"channel {number}"
        if label != "NC" and read_int(folder / f"in{number}_enable") != 0:  # not connected, or switched off
            channels.append(Channel(label, None, folder / f"in{number}_input", folder / f"curr{number}_input"))
    return channels


def _source_of(folders: Sequence[Path], *, kind: str) -> EnergySource | None:
    """Return a source from the chips in hwmon folders: their input line if there is one, else all of their channels."""
    channels = [channel for folder in folders for channel in _channels_of(folder)]
    if not channels:
        return None
    inputs = [channel for channel in channels if channel.label.upper().replace(" ", "_") in _INPUTS]
    chosen = inputs[:1] or list(channels)
    scope = Scope.DEVICE if len(chosen) == 1 else Scope.PACKAGE
    name = as_name(f"{kind}: {' + '.join(channel.label for channel in chosen)}") or kind

    def watts() -> float | None:
        return _sum(channel.watts() for channel in chosen)

    return PowerSampler(SourceLabel(name, scope, Provenance.MEASURED), watts, _HERTZ)


def find(root: Path = ROOT, run: Command = run) -> EnergySource | None:
    """Return the meters that were fitted to this machine, or None. A Jetson's own chips are left to `find_jetson`."""
    built_in = _TRIPLE if _is_jetson(root) else None
    folders = [folder for folder in find_paths(root, _HWMON) if read_text(folder / "name") != built_in]
    return _source_of(folders, kind="INA power meter")


def find_jetson(root: Path = ROOT, run: Command = run) -> EnergySource | None:
    """Return the power rails of a Jetson module, or None if this is not a Jetson."""
    if not _is_jetson(root):
        return None
    sources = (_source_of(find_paths(root, place), kind="Jetson rail") for place in (_JETSON_HWMON, _HWMON))
    return next((source for source in sources if source is not None), None)


def _is_jetson(root: Path) -> bool:
    return "nvidia,tegra" in (read_text(root / "proc/device-tree/compatible") or "")


def _sum(readings: Iterable[float | None]) -> float | None:
    """Return the sum, or None if a reading is missing: a partial sum would look like an idle device."""
    total = 0.0
    for reading in readings:
        if reading is None:
            return None
        total += reading
    return total
