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

__all__ = ["TUNING_SEEDS", "Choice", "candidates", "chosen", "sharing"]

TUNING_SEEDS = (100, 101)


@dataclass(frozen=True, slots=True)
class Choice:
    """What a method was tried with, and what was best."""

    entry: Entry
    """The method with its best settings."""
    tried: Mapping[str, float]
    """The mean of the set-up's measure over tuning seeds, by settings that were tried; empty if there was no choice."""


def candidates(setup: Setup, entry: Entry) -> list[Entry]:
    """Return the entry with every combination of what it is tuned by; the entry alone if there is nothing to choose.

    An entry that shares the settings of another one is not tuned itself.
    """
    if entry.like:
        return [entry]
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
    measure = entry.judged_by or setup.judged_by
    means = [_mean(setup, measure, found) for found in results]
    best = max(range(len(options)), key=lambda place: means[place])
    return Choice(options[best], {_differs(entry, option): mean for option, mean in zip(options, means, strict=True)})


def sharing(entry: Entry, tuned: Choice) -> Choice:
    """Return an entry with the settings that another one was tuned to, as far as it has none of its own."""
    return Choice(replace(entry, settings={**tuned.entry.settings, **entry.settings}), {})


def _mean(setup: Setup, measure: str, results: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean of the measure; a run that failed counts as 0, so that what diverges is not chosen."""
    return statistics.fmean(_measured(setup, measure, result) for result in results)


def _measured(setup: Setup, measure: str, result: Mapping[str, Any]) -> float:
    if "error" in result:
        return 0.0
    if setup.sizes:
        found = [accuracy for accuracy in result["series"]["size"].values() if accuracy is not None]
        return statistics.fmean(found) if found else 0.0
    value = result[measure]
    return 0.0 if value is None else float(value)


def _differs(entry: Entry, option: Entry) -> str:
    return ", ".join(f"{name} {value}" for name, value in option.settings.items() if entry.settings.get(name) != value)
