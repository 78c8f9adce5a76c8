"""Memory of a task: the baseline before it and the peak during it.

Linux keeps the peak memory of a process (VmHWM) and resets it when 5 is written to /proc/self/clear_refs, so the peak
of a task is exact, however short it was. `ru_maxrss` covers the whole life of the process, and its parent's before a
fork: it is the last resort, and labelled an estimate. Use one watch at a time: two would reset each other's peak.
"""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from device_runtime.telemetry.clock import PeriodicThread, now
from device_runtime.telemetry.sysfs import ROOT, read_text
from edgefl.values import Memory, Provenance, Scope

__all__ = ["MemoryWatch", "Resident", "resident"]

SAMPLE_HERTZ = 50.0
"""Sampling rate where the peak cannot be reset. Shorter peaks are missed, so the source says so."""

_RESET_PEAK = b"5"
_SLACK_BYTES = 4 << 20  # the kernel counts pages in batches, so the two differ slightly even after a reset


@dataclass(frozen=True, slots=True)
class Resident:
    """Memory of this process: now, and the peak since the last reset (None where it is not shown)."""

    current_bytes: int
    peak_bytes: int | None


def resident(root: Path = ROOT) -> Resident | None:
    """Return what /proc/self/status says, or None if it says nothing."""
    text = read_text(root / "proc/self/status") or ""
    current, peak = (re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE) for name in ("VmRSS", "VmHWM"))
    if current is None:
        return None
    return Resident(int(current[1]) * 1024, int(peak[1]) * 1024 if peak else None)


class MemoryWatch:
    """Watches from its creation until `stop`, which returns the `Memory`."""

    def __init__(self, root: Path = ROOT, *, sample_hertz: float = SAMPLE_HERTZ) -> None:
        self._root = root
        self._before = resident(root)
        self._highest = _largest_so_far() if self._before is None else self._before.current_bytes
        self._samples = 0
        self._began = now()
        self._sampler: PeriodicThread | None = None
        if self._before is not None and not _peak_was_reset(root):
            self._sampler = PeriodicThread(self._sample, seconds=1 / sample_hertz)

    def stop(self) -> Memory:
        """Stop watching."""
        if self._before is None:
            source = "ru_maxrss, the most since the process began"
            return _memory(self._highest, _largest_so_far(), source, Provenance.ESTIMATED)
        hertz = self._end_sampling()
        after = resident(self._root) or self._before
        exact = hertz is None or _is_record(self._before, after)
        # Include the baseline: memory may have fallen between its reading and the reset of the peak.
        peak = max(self._highest, after.current_bytes, (after.peak_bytes or 0) if exact else 0)
        source = "VmHWM" if exact else f"VmRSS, sampled at {hertz:.3g} Hz"
        return _memory(self._before.current_bytes, peak, source, Provenance.MEASURED)

    def _sample(self) -> None:
        seen = resident(self._root)
        if seen is not None:
            self._highest = max(self._highest, seen.current_bytes)
            self._samples += 1

    def _end_sampling(self) -> float | None:
        """Return the actual sampling rate, or None if there was no sampling."""
        if self._sampler is None:
            return None
        self._sampler.stop()
        return self._samples / max(now() - self._began, 1e-9)


def _is_record(before: Resident, after: Resident) -> bool:
    """Return whether memory exceeded the old peak: then the new peak belongs to this task, reset or not."""
    return before.peak_bytes is not None and after.peak_bytes is not None and after.peak_bytes > before.peak_bytes


def _memory(baseline: int, peak: int, source: str, provenance: Provenance) -> Memory:
    return Memory(baseline_bytes=baseline, peak_bytes=peak, source=source, scope=Scope.PROCESS, provenance=provenance)


def _peak_was_reset(root: Path) -> bool:
    """Reset the peak, and check that it worked: some sandboxes accept the write and ignore it."""
    try:
        # Not Path.write_bytes, which would create the file where it does not exist.
        handle = os.open(root / "proc/self/clear_refs", os.O_WRONLY)
    except OSError:
        return False
    try:
        os.write(handle, _RESET_PEAK)
    except OSError:
        return False
    finally:
        os.close(handle)
    after = resident(root)
    return after is not None and after.peak_bytes is not None and after.peak_bytes - after.current_bytes <= _SLACK_BYTES


def _largest_so_far() -> int:
    import resource  # missing on some platforms, and rarely needed

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024
