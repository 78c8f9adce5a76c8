"""Functions of this process, timed in turns, so that a noisy moment of the machine hits all of them.

For what is pure Python and numpy. Engines slow each other down in one process: they race in `edgefl.bench.race`.
"""

import statistics
import time
from collections.abc import Callable, Mapping

from edgefl.bench.spread import Times

__all__ = ["medians", "timed"]


def timed(tasks: Mapping[str, Callable[[], object]], *, turns: int, warm_up: int = 2) -> dict[str, Times]:
    """Return the seconds of each task."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for turn in range(warm_up + turns):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            if turn >= warm_up:
                seconds[name].append(time.perf_counter() - start)
    return {name: Times(tuple(values)) for name, values in seconds.items()}


def medians(tasks: Mapping[str, Callable[[], object]], *, rounds: int, warm_up: int = 2) -> dict[str, float]:
    """Return the median seconds of each task."""
    found = timed(tasks, turns=rounds, warm_up=warm_up)
    return {name: statistics.median(times.seconds) for name, times in found.items()}
