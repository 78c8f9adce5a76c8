"""Limits that a process sets for itself before it runs what came over the network. What a system lacks is left out."""

import contextlib
import ctypes
import re
import signal
from pathlib import Path

from device_runtime.telemetry.sysfs import read_text

__all__ = ["end_with_parent", "limit_file_size", "limit_memory", "offer_to_oom_killer"]

_LEAST_BYTES = 32 * 2**20
"""A process that is larger than its limit already can still report that."""
_ROUNDING = 1.25
"""Allocators reserve more than they use, in growing steps."""
_STACK_BYTES = 10 * 2**20
"""Address space of a thread, of which it uses little."""
_PARENT_DEATH_SIGNAL = 1
"""Linux: PR_SET_PDEATHSIG."""


def limit_memory(most_bytes: int | None, *, threads: int = 1) -> None:
    """Let further allocations fail once this process has so much memory; None lifts the limit.

    The limit is on writable private memory (RLIMIT_DATA), which a process uses nearly all of, and not on its whole
    address space: onnxruntime maps far more than it touches.
    """
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if most_bytes is None:
            resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
            return
        text = read_text(Path("/proc/self/status")) or ""
        data, resident = (re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE) for name in ("VmData", "VmRSS"))
        if data is not None and resident is not None:
            more = max(_LEAST_BYTES, round(_ROUNDING * (most_bytes - int(resident[1]) * 1024)))
            soft = int(data[1]) * 1024 + more + threads * _STACK_BYTES
            resource.setrlimit(resource.RLIMIT_DATA, (soft if hard < 0 else min(soft, hard), hard))


def limit_file_size(most_bytes: int) -> None:
    """Let writes beyond this size of a file fail with an error."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes if hard < 0 else min(most_bytes, hard), hard))


def offer_to_oom_killer() -> None:
    """Let a system that runs out of memory end this process before any other."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def end_with_parent() -> None:
    """End this process when the one that started it ends, even by a kill, whatever this one computes."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
