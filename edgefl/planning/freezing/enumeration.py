"""The best plan of a very small fleet, by trying all plans.

Devices with the same choices and the same samples are interchangeable, so all that counts is how many of them train
which set. Every combination of one class is a row of a table. The search goes through the combinations of the classes
one by one, takes the last class all at once, and skips what already costs too much.
"""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from edgefl.planning.freezing.bias import Reals
from edgefl.planning.freezing.candidate_sets import Integers
from edgefl.planning.freezing.problem import CandidatePlan, Problem

__all__ = ["best_by_enumeration"]

_SAME = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class _Class:
    """Interchangeable devices and all ways to assign sets to them."""

    devices: Integers
    weight: float
    """The weight of one device."""
    rows: Integers
    """One row per way: the set of each device, as a row of the pool."""
    coverage: Reals
    """The coverage of each way."""


@dataclass(slots=True, eq=False)
class _Best:
    bias: float
    unused: float
    ways: tuple[int, ...] | None = None


def best_by_enumeration(problem: Problem, known: CandidatePlan, *, most_plans: int) -> CandidatePlan | None:
    """Return the best plan among the groups' choices, or None if there are too many plans to try."""
    members = [_interchangeable(problem, group.devices) for group in problem.groups]
    counts = [
        math.comb(group.choices.size + devices.size - 1, devices.size)
        for group, classes in zip(problem.groups, members, strict=True)
        for devices in classes
    ]
    if math.prod(counts) > most_plans or not problem.complete:
        return None
    classes = [
        _class(problem, devices, group.choices)
        for group, classes_of_group in zip(problem.groups, members, strict=True)
        for devices in classes_of_group
    ]
    classes.sort(key=lambda one: (len(one.rows), int(one.devices[0])))
    best = _Best(known.bias, float(problem.unused(known.chosen)))
    _descend(problem, classes, (), best)
    chosen = known.chosen.copy()
    for one, way in zip(classes, best.ways or (), strict=False):
        chosen[one.devices] = one.rows[way]
    bound = best.bias if problem.lists_every_set else min(best.bias, known.bound)
    return CandidatePlan(chosen, best.bias, bound, least_unused=problem.lists_every_set)


def _interchangeable(problem: Problem, devices: Integers) -> list[Integers]:
    weights = problem.weights[devices]
    return [devices[weights == weight] for weight in np.unique(weights)]


def _class(problem: Problem, devices: Integers, choices: Integers) -> _Class:
    ways = itertools.combinations_with_replacement(choices.tolist(), devices.size)
    rows = np.array(list(ways), np.int64)
    weight = float(problem.weights[devices[0]])
    return _Class(devices, weight, rows, weight * problem.pool[rows].sum(axis=1))


def _descend(problem: Problem, classes: list[_Class], ways: tuple[int, ...], best: _Best) -> None:
    """Try all ways of the next class after the ways of those before it."""
    chosen = list(zip(classes, ways, strict=False))
    one = classes[len(ways)]
    so_far = np.sum([done.coverage[way] for done, way in chosen], axis=0) + np.zeros(problem.sizes.size)
    rest = classes[len(ways) + 1 :]
    # The largest coverage of each block, if all later devices train it.
    most = so_far + one.coverage + sum(later.weight * later.devices.size for later in rest)
    paid = sum(later.weight * later.devices.size for later in rest) - 1.0
    cost = np.full(len(one.rows), paid)
    sets = [(done.weight, row) for done, way in chosen for row in done.rows[way]]
    for weight, row in sets:
        cost += weight / _least(most[:, problem.pool[row]])
    for device in range(one.devices.size):
        cost += one.weight / _least(np.where(problem.pool[one.rows[:, device]], most, np.inf))
    if rest:
        for following in np.flatnonzero(cost <= best.bias + _SAME).tolist():
            if cost[following] <= best.bias + _SAME:  # `best` may have improved meanwhile
                _descend(problem, classes, (*ways, following), best)
        return
    cost[~(most > 0).all(axis=1)] = np.inf
    unused = problem.budgets.sum() - problem.fill[one.rows].sum(axis=1) - sum(problem.fill[row] for _, row in sets)
    better = (cost < best.bias - _SAME) | ((cost < best.bias + _SAME) & (unused < best.unused))
    if better.any():
        # Round, so that equal biases are ties, decided by less unused.
        way = int(np.lexsort((unused, np.round(cost, 9)))[0])
        best.bias, best.unused, best.ways = max(0.0, float(cost[way])), float(unused[way]), (*ways, way)


def _least(values: Reals) -> Reals:
    least: Reals = np.maximum(values.min(axis=1), 1e-300)
    return least
