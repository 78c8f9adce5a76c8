"""The power chip of a Raspberry Pi 5 (also Pi 500 and Compute Module 5), which shows volts and amperes of each rail.

`vcgencmd pmic_read_adc` prints a line for each reading:

      VDD_CORE_A current(7)=6.22421000A
      VDD_CORE_V volt(15)=0.86173300V

The numbers in brackets are channels of the converter and do not match between the two, so rails are paired by name. The
sum covers processor, memory, radio and HDMI. It covers neither what draws 5 V directly (USB devices, fans, boards on
the header) nor the losses of the converters, and the name says so. Earlier Pis answer with an error: absent.
"""

import re
from pathlib import Path

from device_runtime.telemetry.energy.energy_source import EnergySource, SourceLabel
from device_runtime.telemetry.energy.power_sampling import PowerSampler
from device_runtime.telemetry.sysfs import ROOT
from device_runtime.telemetry.system_commands import Command, run
from edgefl.values import Provenance, Scope

__all__ = ["find", "rail_watts"]

_HERTZ = 10.0
_WORDS = ("vcgencmd", "pmic_read_adc")
_READING = re.compile(
    r"^\s*(?P<rail>\S+)_(?P<kind>[AV])\s+(?:current|volt)\(\d+\)=(?P<value>\d+(?:\.\d+)?)(?P=kind)\s*$", re.MULTILINE
)


def rail_watts(output: str) -> dict[str, float]:
    """Return the watts of every rail for which the output has both volts and amperes."""
    readings: dict[str, dict[str, float]] = {"A": {}, "V": {}}
    for match in _READING.finditer(output):
        readings[match["kind"]][match["rail"]] = float(match["value"])
    volts = readings["V"]
    return {rail: amperes * volts[rail] for rail, amperes in readings["A"].items() if rail in volts}


def find(root: Path = ROOT, run: Command = run) -> EnergySource | None:
    """Return the power chip, or None if this machine has none. The root is not used: a command shows the chip."""
    rails = frozenset(rail_watts(run(_WORDS) or ""))
    if not rails:
        return None

    def watts() -> float | None:
        shown = rail_watts(run(_WORDS) or "")
        # A partial answer would look like an idle device.
        return sum(shown.values()) if shown.keys() == rails else None

    name = f"Raspberry Pi PMIC, {len(rails)} rails (without 5 V devices and converter losses)"
    return PowerSampler(SourceLabel(name, Scope.DEVICE, Provenance.MEASURED), watts, _HERTZ)
