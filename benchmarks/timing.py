"""Alternating measurements: what `benchmarks` times with."""

import statistics
import time
from collections.abc import Callable, Mapping

__all__ = ["medians"]


def medians(tasks: Mapping[str, Callable[[], object]], *, rounds: int, warm_up: int = 2) -> dict[str, float]:
    """Return the median seconds of each task, run in turns so that a noisy moment hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for turn in range(warm_up + rounds):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            if turn >= warm_up:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}
