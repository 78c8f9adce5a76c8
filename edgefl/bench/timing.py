"""Interleaved timings of functions in this process, and their statistics: percentiles, and ratios with quartiles.

Shared machines are noisy in bursts. Functions are therefore timed in turns, a ratio is that of medians, and its spread
is that of the ratios turn by turn: both sides of a turn saw the same moment. Engines slow each other down in one
process, so they are measured in `edgefl.bench.engine_processes`.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["CLEAR", "Ratio", "Times", "medians", "ratio_of", "timed"]

CLEAR = "clear"
FEWEST_FOR_P99 = 100
"""With fewer turns, the 99th percentile is a guess between the two slowest."""
WIDE = 0.5
"""A ratio whose interquartile range exceeds this fraction of it means little."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of the same work, turn by turn, without the warm-up."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median."""
        return self.at(0.5)

    @property
    def fastest(self) -> float:
        """The fastest turn: the time of undisturbed work."""
        return min(self.seconds)

    def at(self, share: float) -> float:
        """Return this quantile of the seconds, interpolated linearly."""
        return float(np.quantile(self.seconds, share))

    def figures(self) -> dict[str, float | int | None]:
        """Return the percentiles by name; p99 is None if there were too few turns."""
        return {
            "turns": len(self.seconds),
            "min": self.fastest,
            "p50": self.median,
            "p90": self.at(0.9),
            "p99": self.at(0.99) if len(self.seconds) >= FEWEST_FOR_P99 else None,
            "max": max(self.seconds),
        }


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ratio of the medians of two timings, and the quartiles of the per-turn ratios."""

    value: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """'clear', or why the ratio should not be quoted."""
        if self.high - self.low > WIDE * self.value:
            return "too noisy to mean much"
        if self.low <= 1 <= self.high:
            return "no difference seen"
        return CLEAR

    def figures(self, against: str) -> dict[str, Any]:
        """Return the numbers by name."""
        return {
            "ratio": self.value,
            "low": self.low,
            "high": self.high,
            "against": against,
            "verdict": self.verdict,
        }


def ratio_of(over: Times, under: Times) -> Ratio:
    """Return the ratio of two timings from the same turns."""
    paired: Sequence[float] = [a / b for a, b in zip(over.seconds, under.seconds, strict=True)]
    low, high = (float(np.quantile(paired, share)) for share in (0.25, 0.75))
    return Ratio(over.median / under.median, low, high)


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
