"""Rates by method: each is tried on seeds of its own, and the best is what the reported seeds are run with.

A comparison in which one method's rate was tuned and another's was not says nothing about the methods. A set-up names
rates that every method is tried with; an entry may name others, or further settings. Where the best is the largest or
the smallest that was tried, the next one out is tried too, twice at most. What is best is decided by the measure that
the set-up's claims are about, averaged over tuning seeds. No reported figure comes from those.
"""

import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.accuracy_study.entries import Entry
from benchmarks.accuracy_study.setups import Setup
from edgefl.strategies import STRATEGIES
from edgefl.values import settings_of

__all__ = ["STEPS", "TUNING_SEEDS", "Choice", "Trial", "candidates", "sharing"]

TUNING_SEEDS = (100, 101)
STEPS = 3
"""How often candidates are run: once, and twice beyond the best."""


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
    grid = {} if entry.like else _grid(setup, entry)
    if not setup.rates or not grid:  # a set-up without rates is not tuned at all
        return [entry]
    return [
        replace(entry, settings={**entry.settings, **dict(zip(grid, values, strict=True))})
        for values in itertools.product(*grid.values())
    ]


class Trial:
    """The candidates of one entry, as far as they were run."""

    def __init__(self, setup: Setup, entry: Entry) -> None:
        self.setup, self.entry = setup, entry
        self._tried: list[Entry] = []
        self._means: list[float] = []

    def wanted(self) -> list[Entry]:
        """Return what is to be run next: all candidates, then those beyond the best one if it is at the edge."""
        if self._tried:
            return [one for one in self._beyond() if one not in self._tried]
        options = candidates(self.setup, self.entry)
        return options if len(options) > 1 else []

    def note(self, candidate: Entry, results: Sequence[Mapping[str, Any]]) -> None:
        """Note the runs of a candidate with all tuning seeds; one that failed counts as 0, so that it is not chosen."""
        measure = self.entry.judged_by or self.setup.judged_by
        self._tried.append(candidate)
        self._means.append(statistics.fmean(_measured(self.setup, measure, result) for result in results))

    def choice(self) -> Choice:
        """Return the best candidate."""
        if not self._tried:
            return Choice(candidates(self.setup, self.entry)[0], {})
        tried = {_differs(self.entry, one): mean for one, mean in zip(self._tried, self._means, strict=True)}
        return Choice(self._best(), tried)

    def _best(self) -> Entry:
        return self._tried[self._means.index(max(self._means))]

    def _beyond(self) -> Iterator[Entry]:
        """Yield the best candidate with the next value out, for each setting of which it has an extreme one.

        Not for whole numbers, such as that of networks: too few or too many leave devices out.
        """
        best = self._best()
        for name, values in _grid(self.setup, self.entry).items():
            own, tried = best.settings[name], sorted({float(one.settings[name]) for one in self._tried})
            if len(values) > 1 and not isinstance(own, int) and own in (tried[0], tried[-1]):
                edge, neighbour = tried[:2] if own == tried[0] else tried[:-3:-1]
                yield replace(best, settings={**best.settings, name: float(f"{edge * edge / neighbour:.1g}")})


def sharing(entry: Entry, tuned: Choice) -> Choice:
    """Return an entry with the settings that another one was tuned to, as far as it has none of its own."""
    return Choice(replace(entry, settings={**tuned.entry.settings, **entry.settings}), {})


def _grid(setup: Setup, entry: Entry) -> dict[str, Sequence[float]]:
    """Return what an entry is tuned by."""
    grid = dict(entry.grid)
    if setup.rates and "learning_rate" in settings_of(STRATEGIES[entry.strategy]):
        grid.setdefault("learning_rate", setup.rates)
    return grid


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
