"""Measures how much memory steps take: each case in a fresh process, so that nothing is left from another case.

Starting Python takes a second or two on a small device, so only a few cases are measured: those that differ most. Where
processes cannot be started, as in an emulator, this process measures itself, from the smallest case to the largest, and
releases what it can between them.
"""

import contextlib
import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from device_runtime.engines import ThreadSettings, open_engine
from device_runtime.profiler.cases import Case
from device_runtime.profiler.memory_probe import peak_of, write_case
from device_runtime.telemetry.clock import Clock, now
from edgefl.values import Memory, from_json

__all__ = ["MemoryPeaks", "peak_in_fresh_process", "peaks_of", "most_different_cases"]

_MOST_PROBES = 8
_FEWEST_PROBES = 4
_LONGEST_SECONDS = 20.0
_PROBE = "from device_runtime.profiler.memory_probe import main; main()"


@dataclass(frozen=True, slots=True)
class MemoryPeaks:
    """The peak memory of cases."""

    of: Mapping[Case, Memory]
    fresh: bool
    """Whether each was measured in its own process. Otherwise it is rough: memory freed earlier may hide some."""


def most_different_cases(cases: Sequence[Case]) -> list[Case]:
    """Order cases so that the first few differ most in what takes memory: activations, parameters, trained ones."""
    sizes = {case: _sizes(case) for case in cases}
    largest = [max(column) or 1 for column in zip(*sizes.values(), strict=True)]
    points = {case: tuple(size / most for size, most in zip(sizes[case], largest, strict=True)) for case in cases}
    left = sorted(cases, key=lambda case: sum(points[case]))
    chosen = [left.pop()] if left else []
    while left:
        farthest = max(left, key=lambda case: min(_distance(points[case], points[other]) for other in chosen))
        left.remove(farthest)
        chosen.append(farthest)
    return chosen


def peaks_of(
    cases: Sequence[Case],
    *,
    engine: str | None,
    threads: ThreadSettings,
    seconds: float,
    fresh: bool = True,
    progress: Callable[[float], None] = lambda share: None,
    clock: Clock = now,
) -> MemoryPeaks:
    """Measure the cases that differ most, as far as the seconds allow, and at least a few.

    `fresh` uses a new process per case; an engine that is slow to start is better measured in this one.
    """
    chosen = most_different_cases(cases)[:_MOST_PROBES]
    if not fresh:
        return _in_this_process(chosen, engine, threads, seconds, clock)
    began = clock()
    found: dict[Case, Memory] = {}
    for case in chosen:
        if clock() - began > seconds and len(found) >= _FEWEST_PROBES:
            break
        try:
            memory = peak_in_fresh_process(case, engine, threads)
        except OSError:
            return _in_this_process(chosen, engine, threads, seconds, clock)
        if memory is not None:
            found[case] = memory
        progress(min(1.0, (clock() - began) / seconds))
    return MemoryPeaks(found, fresh=True)


def peak_in_fresh_process(case: Case, engine: str | None, threads: ThreadSettings) -> Memory | None:
    """Return the memory of a case, or None if its process was killed or took too long.

    Raise OSError if this machine cannot start the process at all.
    """
    with tempfile.TemporaryDirectory(prefix="edgefl-") as folder:
        write_case(Path(folder), case, engine, threads)
        words = [sys.executable, "-c", _PROBE, folder]
        # The new process must find the same packages, however this one was started.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=_LONGEST_SECONDS
            )
        except subprocess.TimeoutExpired:
            return None
        return from_json(Memory, json.loads(done.stdout)) if done.returncode == 0 else None


def _in_this_process(
    cases: Sequence[Case], engine: str | None, threads: ThreadSettings, seconds: float, clock: Clock
) -> MemoryPeaks:
    opened = open_engine(engine, threads)
    began = clock()
    found: dict[Case, Memory] = {}
    for case in sorted(cases, key=lambda case: case.likely_bytes):
        if clock() - began > seconds and len(found) >= _FEWEST_PROBES:
            break
        _release_memory()
        found[case] = peak_of(case, opened)
    return MemoryPeaks(found, fresh=False)


def _release_memory() -> None:
    """Return freed memory to the system; otherwise the next case would reuse it and seem to need none."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # not every C library has this function
        ctypes.CDLL(None).malloc_trim(0)


def _sizes(case: Case) -> tuple[int, int, int]:
    return case.cost.activation_bytes(case.batch), case.cost.parameter_bytes, case.cost.trained_parameters


def _distance(one: Sequence[float], other: Sequence[float]) -> float:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
