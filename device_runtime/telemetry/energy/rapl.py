"""RAPL: the energy counters of Intel and AMD processors, below /sys/class/powercap.

`intel-rapl:0` is a package; `intel-rapl:0:0` is a part that the package already counts, so only the outer ones are
read. `psys` counts the platform including the packages: it is used only if there is no package. `intel-rapl-mmio` is a
second view of the same packages. On most systems only root may read the counters; for other users the source is absent.
"""

import re
from pathlib import Path

from device_runtime.telemetry.energy.energy_counter import EnergyCounter
from device_runtime.telemetry.energy.energy_source import EnergySource, SourceLabel
from device_runtime.telemetry.sysfs import ROOT, find_paths, read_int, read_text
from device_runtime.telemetry.system_commands import Command, run
from edgefl.values import Provenance, Scope

__all__ = ["find"]

_OUTER = re.compile(r"intel-rapl:\d+")


def find(root: Path = ROOT, run: Command = run) -> EnergySource | None:
    """Return the counters of all packages, or of the platform, or None."""
    zones = [zone for zone in find_paths(root, "sys/class/powercap/intel-rapl:*") if _OUTER.fullmatch(zone.name)]
    packages = [zone for zone in zones if (read_text(zone / "name") or "").startswith("package")]
    if packages:
        return _source(packages, f"intel-rapl, {_packages(len(packages))}", Scope.PACKAGE)
    platforms = [zone for zone in zones if read_text(zone / "name") == "psys"]
    return _source(platforms[:1], "intel-rapl, platform", Scope.DEVICE)


def _packages(number: int) -> str:
    return "1 package" if number == 1 else f"{number} packages"


def _source(zones: list[Path], name: str, scope: Scope) -> EnergySource | None:
    counters = [zone / "energy_uj" for zone in zones]

    def joules() -> list[float] | None:
        counted = [read_int(counter) for counter in counters]
        # One package out of two would be misleading.
        return None if None in counted else [count * 1e-6 for count in counted if count is not None]

    if not joules():
        return None
    ranges = [read_int(zone / "max_energy_range_uj") for zone in zones]
    wraps_at = tuple(None if limit is None else limit * 1e-6 for limit in ranges)
    return EnergyCounter(SourceLabel(name, scope, Provenance.MEASURED), joules, wraps_at)
