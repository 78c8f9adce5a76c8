"""Total and available memory for this process: the machine's, or its container's.

The profiler reads it. For the memory that a task takes see `device_runtime.telemetry.peak_memory`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from device_runtime.telemetry.cgroups import groups
from device_runtime.telemetry.sysfs import ROOT, read_int, read_text

__all__ = ["MemorySize", "memory_size"]


@dataclass(frozen=True, slots=True)
class MemorySize:
    """Memory that this process may have in total, and what it could still get without swapping."""

    total_bytes: int
    available_bytes: int


def memory_size(root: Path = ROOT) -> MemorySize | None:
    """Return total and available memory within the limits of every control group of this process. None if not shown."""
    text = read_text(root / "proc/meminfo") or ""
    total = _kilobytes(text, "MemTotal")
    if total is None:
        return None
    available = _kilobytes(text, "MemAvailable")
    if available is None:  # kernels before 3.14
        available = _kilobytes(text, "MemFree") or 0
    for folder in groups("memory", root):
        limit, used = _limit_and_use(folder)
        if limit is not None and limit < total:
            total = limit
        if limit is not None and used is not None:
            available = min(available, max(0, limit - used))
    return MemorySize(total, min(available, total))


def _kilobytes(text: str, name: str) -> int | None:
    match = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _limit_and_use(folder: Path) -> tuple[int | None, int | None]:
    """Return the limit of one group and what it uses, minus the file cache that the kernel would reclaim first."""
    limit, used, cache = read_int(folder / "memory.max"), read_int(folder / "memory.current"), "inactive_file"
    if used is None and limit is None:
        limit = read_int(folder / "memory.limit_in_bytes")
        used, cache = read_int(folder / "memory.usage_in_bytes"), "total_inactive_file"
    if used is None:
        return limit, None
    match = re.search(rf"^{cache} (\d+)$", read_text(folder / "memory.stat") or "", re.MULTILINE)
    return limit, max(0, used - int(match[1])) if match else used
