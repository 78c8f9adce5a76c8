"""How much memory there is for this process: of the machine, or of the container that it lives in.

Read by the profiler. What a round takes is `device_runtime.telemetry.memory`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from device_runtime.telemetry.cgroups import groups
from device_runtime.telemetry.system_files import ROOT, number_of, text_of

__all__ = ["MemorySize", "memory_size"]


@dataclass(frozen=True, slots=True)
class MemorySize:
    """Memory that this process may have in all, and what it could still get without swapping."""

    total_bytes: int
    available_bytes: int


def memory_size(root: Path = ROOT) -> MemorySize | None:
    """Total and available memory, with the limits of every control group above this process. None if not shown."""
    text = text_of(root / "proc/meminfo") or ""
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
    """The limit of one group and what it uses, less the file cache that the kernel would give back first."""
    limit, used, cache = number_of(folder / "memory.max"), number_of(folder / "memory.current"), "inactive_file"
    if used is None and limit is None:
        limit = number_of(folder / "memory.limit_in_bytes")
        used, cache = number_of(folder / "memory.usage_in_bytes"), "total_inactive_file"
    if used is None:
        return limit, None
    match = re.search(rf"^{cache} (\d+)$", text_of(folder / "memory.stat") or "", re.MULTILINE)
    return limit, max(0, used - int(match[1])) if match else used
