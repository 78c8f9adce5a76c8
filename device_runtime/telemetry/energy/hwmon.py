"""INA power meters that Linux shows as hardware monitors: INA219, INA226 and relatives, INA3221.

Somebody soldered or plugged them in, so only they know what flows through them. What can be told: a channel whose label
names the input of the board covers the device, and so does a lone meter, which is put there to measure it. Several
channels without such a label are summed, called parts of the package, and named one by one.

    ina219 and relatives   power1_input in microwatts, or in1_input (mV) x curr1_input (mA); in0 is the shunt
    ina3221                in1..in3_input (mV) x curr1..curr3_input (mA), in*_label; in4 and above are shunts and sums
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from device_runtime.telemetry.commands import Command, run
from device_runtime.telemetry.energy.sampled import SampledPower
from device_runtime.telemetry.energy.source import EnergySource, Label
from device_runtime.telemetry.system_files import ROOT, as_name, found, number_of, text_of
from edgefl.values import Provenance, Scope

__all__ = ["Channel", "find", "channels_of", "source_of", "is_tegra"]

_HERTZ = 10.0
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
        """Power at this moment, or None if the chip does not answer."""
        microwatts = number_of(self.power) if self.power is not None else None
        if microwatts is not None:
            return microwatts * 1e-6
        millivolts, milliamperes = number_of(self.volts), number_of(self.amperes)
        return None if millivolts is None or milliamperes is None else millivolts * milliamperes * 1e-6


def channels_of(folder: Path) -> list[Channel]:
    """The channels of the chip in a hwmon folder; none if it is no INA chip or shows nothing."""
    chip = text_of(folder / "name") or ""
    if _SINGLE.match(chip):
        power, volts, amperes = (folder / f"{kind}1_input" for kind in ("power", "in", "curr"))
        label = text_of(folder / "label") or text_of(folder / "in1_label") or chip
        candidates = [Channel(label, power, volts, amperes)]
    elif chip == _TRIPLE:
        candidates = _triple(folder)
    else:
        candidates = []
    return [channel for channel in candidates if channel.watts() is not None]


def _triple(folder: Path) -> list[Channel]:
    channels = []
    for number in (1, 2, 3):
        label = text_of(folder / f"in{number}_label") or f"channel {number}"
        if label != "NC" and number_of(folder / f"in{number}_enable") != 0:  # not connected; switched off
            channels.append(Channel(label, None, folder / f"in{number}_input", folder / f"curr{number}_input"))
    return channels


def source_of(channels: Sequence[Channel], *, kind: str) -> EnergySource | None:
    """A source from the channels of one or more chips: the input line if there is one, else all of them."""
    if not channels:
        return None
    inputs = [channel for channel in channels if channel.label.upper().replace(" ", "_") in _INPUTS]
    chosen = inputs[:1] or list(channels)
    scope = Scope.DEVICE if len(chosen) == 1 else Scope.PACKAGE
    name = as_name(f"{kind}: {' + '.join(channel.label for channel in chosen)}") or kind

    def watts() -> float | None:
        return _sum(channel.watts() for channel in chosen)

    return SampledPower(Label(name, scope, Provenance.MEASURED), watts, _HERTZ)


def find(root: Path = ROOT, run: Command = run) -> EnergySource | None:
    """The meters of this machine, or None. The chips that a Jetson is built with are left to `jetson`."""
    built_in = _TRIPLE if is_tegra(root) else None
    folders = [folder for folder in found(root, "sys/class/hwmon/hwmon*") if text_of(folder / "name") != built_in]
    channels = [channel for folder in folders for channel in channels_of(folder)]
    return source_of(channels, kind="INA power meter")


def is_tegra(root: Path) -> bool:
    """Whether this is one of NVIDIA's boards."""
    return "nvidia,tegra" in (text_of(root / "proc/device-tree/compatible") or "")


def _sum(readings: Iterable[float | None]) -> float | None:
    """The sum, or None if one is missing: part of a sum would look like a device at rest."""
    total = 0.0
    for reading in readings:
        if reading is None:
            return None
        total += reading
    return total
