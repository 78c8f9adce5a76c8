"""RAPL: the energy counters of Intel and AMD processors, below /sys/class/powercap.

`intel-rapl:0` is a package, `intel-rapl:0:0` a part of it that the package already counts, so only the outer ones are
read. `psys` counts the platform with the packages in it: it serves only where there is no package. `intel-rapl-mmio` is
a second view of the same packages. Most systems let only root read the counters: absent for everybody else.
"""

import re
from pathlib import Path

from device_runtime.telemetry.commands import Command, run
from device_runtime.telemetry.energy.counted import CountedEnergy
from device_runtime.telemetry.energy.source import EnergySource, Label
from device_runtime.telemetry.system_files import ROOT, found, number_of, text_of
from edgefl.values import Provenance, Scope

__all__ = ["find"]

_OUTER = re.compile(r"intel-rapl:\d+")


def find(root: Path = ROOT, run: Command = run) -> EnergySource | None:
    """The counters of all packages, or of the platform, or None."""
    zones = [zone for zone in found(root, "sys/class/powercap/intel-rapl:*") if _OUTER.fullmatch(zone.name)]
    packages = [zone for zone in zones if (text_of(zone / "name") or "").startswith("package")]
    if packages:
        return _source(packages, f"intel-rapl, {_packages(len(packages))}", Scope.PACKAGE)
    platforms = [zone for zone in zones if text_of(zone / "name") == "psys"]
    return _source(platforms[:1], "intel-rapl, platform", Scope.DEVICE)


def _packages(number: int) -> str:
    return "1 package" if number == 1 else f"{number} packages"


def _source(zones: list[Path], name: str, scope: Scope) -> EnergySource | None:
    counters = [zone / "energy_uj" for zone in zones]

    def joules() -> list[float] | None:
        counted = [number_of(counter) for counter in counters]
        # One package out of two would be half the truth.
        return None if None in counted else [count * 1e-6 for count in counted if count is not None]

    if not joules():
        return None
    ranges = [number_of(zone / "max_energy_range_uj") for zone in zones]
    wraps_at = tuple(None if limit is None else limit * 1e-6 for limit in ranges)
    return CountedEnergy(Label(name, scope, Provenance.MEASURED), joules, wraps_at)
