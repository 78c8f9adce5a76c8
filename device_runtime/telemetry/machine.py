"""Facts about this machine: architecture, system, usable cores, a readable name, free storage.

The profiler reads them.
"""

import os
import platform
import shutil
from pathlib import Path

from device_runtime.telemetry.cgroups import groups
from device_runtime.telemetry.sysfs import ROOT, as_name, read_int, read_text
from edgefl.values import Machine

__all__ = ["machine", "usable_cores", "device_name", "free_storage"]

# Placeholders that mainboard vendors leave in the product name.
_PLACEHOLDER_NAMES = {
    "system product name",
    "to be filled by o.e.m.",
    "default string",
    "not specified",
    "none",
    "unknown",
}


def machine(root: Path = ROOT) -> Machine:
    """Return the hardware and its system."""
    release = ".".join(platform.release().split(".")[:2])
    return Machine(
        architecture=as_name(platform.machine()) or "unknown",
        system=as_name(f"{platform.system()} {release}") or "unknown",
        cores=usable_cores(root),
    )


def usable_cores(root: Path = ROOT) -> int:
    """Return the cores that this process may use: those it may be scheduled on, or fewer if a control group limits CPU
    time.

    A quota of 2.5 cores counts as 2: a third thread would use up its time early and keep the others waiting.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [quota for folder in groups("cpu", root) if (quota := _cpu_quota(folder)) is not None]
    return max(1, int(min([float(allowed), *quotas])))


def _cpu_quota(folder: Path) -> float | None:
    """Return the quota of one control group in cores, or None for no limit."""
    words = (read_text(folder / "cpu.max") or "").split()
    if len(words) == 2:
        quota, period = (int(word) if word.isdecimal() else None for word in words)
    else:
        quota, period = read_int(folder / "cpu.cfs_quota_us"), read_int(folder / "cpu.cfs_period_us")
    return quota / period if quota is not None and period and quota > 0 else None


def device_name(root: Path = ROOT) -> str:
    """Return a readable name for the device: its model, or its name on the network."""
    model = as_name(read_text(root / "proc/device-tree/model"))
    product = as_name(read_text(root / "sys/class/dmi/id/product_name"))
    if product is not None and product.lower() in _PLACEHOLDER_NAMES:
        product = None
    host = as_name(read_text(root / "proc/sys/kernel/hostname")) or as_name(platform.node())
    return model or product or host or "device"


def free_storage(folder: Path) -> int:
    """Return the free bytes where the folder is, or will be: it need not exist yet."""
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place).free
