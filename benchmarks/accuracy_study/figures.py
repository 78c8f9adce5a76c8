"""Means and deviations of runs over seeds."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.stats import t as student_t

__all__ = ["MEASURES", "Figure", "Figures", "Value", "figures_of"]

MEASURES = (
    "accuracy",
    "late_accuracy",
    "before",
    "after",
    "up_bytes",
    "down_bytes",
    "multiply_adds",
    "trained_fraction",
    "kept_fraction",
    "step_milliseconds",
    "overlap",
    "overlap_by_chance",
)


@dataclass(frozen=True, slots=True)
class Value:
    """A mean over seeds, and how far they differ."""

    mean: float
    deviation: float
    """Standard deviation of a sample; 0 of a single seed."""
    by_seed: Mapping[int, float]
    """What each seed gave."""

    @property
    def interval(self) -> float | None:
        """Half the width of the mean's 95 % confidence interval, by Student's t; None for a single seed."""
        seeds = len(self.by_seed)
        if seeds < 2:
            return None
        return float(student_t.ppf(0.975, seeds - 1)) * self.deviation / math.sqrt(seeds)

    def with_each(self, other: "Value", combined: Callable[[float, float], float]) -> "Value | None":
        """Combine what the same seeds gave here and there, such as to differences; None where no seed did both."""
        both = {seed: combined(one, other.by_seed[seed]) for seed, one in self.by_seed.items() if seed in other.by_seed}
        return _of_seeds(both) if both else None


@dataclass(frozen=True, slots=True)
class Figure:
    """What a strategy reached in a set-up."""

    setup: str
    label: str
    seeds: int
    values: Mapping[str, Value]
    series: Mapping[str, Mapping[float, Value]]
    """Accuracies by something else: by the size of an extracted submodel, by epochs of fine-tuning."""
    problems: tuple[str, ...]


Figures = Mapping[tuple[str, str], Figure]
"""By set-up and label."""


def figures_of(results: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Figure]:
    """Return the figures of all strategies in all set-ups, in the order of the runs."""
    together: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for result in results:
        together.setdefault((result["setup"], result["label"]), []).append(result)
    return {key: _figure(*key, found) for key, found in together.items()}


def _figure(setup: str, label: str, results: list[Mapping[str, Any]]) -> Figure:
    good = [result for result in results if "error" not in result]
    problems = {str(result["error"]) for result in results if "error" in result}
    problems |= {str(reason) for result in good for reason in result["refused"]}
    # A run that was finished before a measure was added does not have it.
    values = {name: _value({result["seed"]: result.get(name) for result in good}) for name in MEASURES}
    return Figure(
        setup,
        label,
        len(good),
        {name: value for name, value in values.items() if value is not None},
        {name: _series(good, name) for name in dict.fromkeys(name for result in good for name in result["series"])},
        tuple(sorted(problems)),
    )


def _series(results: Sequence[Mapping[str, Any]], name: str) -> dict[float, Value]:
    by_place: dict[float, dict[int, float | None]] = {}
    for result in results:
        for place, accuracy in result["series"].get(name, {}).items():
            by_place.setdefault(float(place), {})[result["seed"]] = accuracy
    return {place: value for place, found in by_place.items() if (value := _value(found)) is not None}


def _value(found: Mapping[int, float | None]) -> Value | None:
    there = {seed: value for seed, value in found.items() if value is not None}
    return _of_seeds(there) if there else None


def _of_seeds(found: Mapping[int, float]) -> Value:
    values = list(found.values())
    return Value(statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0, found)
