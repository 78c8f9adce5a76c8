"""Rates by method: each is tried on seeds of its own, and the best is what the reported seeds are run with.

A comparison in which one method's rate was tuned and another's was not says nothing about the methods. A set-up names
rates that every method is tried with; an entry may name others, or further settings. What is best is decided by the
measure that the set-up's claims are about, averaged over tuning seeds. No reported figure comes from those.
"""

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.accuracy_study.entries import Entry
from benchmarks.accuracy_study.setups import Setup
from edgefl.strategies import STRATEGIES
from edgefl.values import Setting, settings_of

__all__ = ["TUNING_SEEDS", "Choice", "candidates", "chosen"]

TUNING_SEEDS = (100, 101)


@dataclass(frozen=True, slots=True)
class Choice:
    """What a method was tried with, and what was best."""

    entry: Entry
    """The method with its best settings."""
    tried: Mapping[str, float]
    """The mean of the set-up's measure over tuning seeds, by settings that were tried; empty if there was no choice."""


def candidates(setup: Setup, entry: Entry) -> list[Entry]:
    """Return the entry with every combination of what it is tuned by; the entry alone if there is nothing to choose."""
    known = settings_of(STRATEGIES[entry.strategy])
    grid: dict[str, Sequence[Setting]] = dict(entry.grid)
    if setup.rates and "learning_rate" in known:
        grid.setdefault("learning_rate", setup.rates)
    if not setup.rates or not grid:  # a set-up without rates is not tuned at all
        return [entry]
    return [
        replace(entry, settings={**entry.settings, **dict(zip(grid, values, strict=True))})
        for values in itertools.product(*grid.values())
    ]


def chosen(setup: Setup, entry: Entry, results: Sequence[Sequence[Mapping[str, Any]]]) -> Choice:
    """Return the best candidate; `results` has a sequence of runs for each, in the order of `candidates`."""
    options = candidates(setup, entry)
    if len(options) == 1:
        return Choice(options[0], {})
    means = [_mean(setup, found) for found in results]
    best = max(range(len(options)), key=lambda place: means[place])
    return Choice(options[best], {_differs(entry, option): mean for option, mean in zip(options, means, strict=True)})


def _mean(setup: Setup, results: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean of the measure; a run that failed counts as 0, so that what diverges is not chosen."""
    return statistics.fmean(_measure(setup, result) for result in results)


def _measure(setup: Setup, result: Mapping[str, Any]) -> float:
    if "error" in result:
        return 0.0
    if setup.sizes:
        found = [each["accuracy"] for each in result["extracted"].values() if each["accuracy"] is not None]
        return statistics.fmean(found) if found else 0.0
    value = result[setup.judged_by]
    return 0.0 if value is None else float(value)


def _differs(entry: Entry, option: Entry) -> str:
    return ", ".join(f"{name} {value}" for name, value in option.settings.items() if entry.settings.get(name) != value)
