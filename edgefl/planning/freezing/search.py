"""Improves a plan step by step: moves some devices of a group to another set while that helps.

Devices that train the same set are moved together: all of them, half of them, or the lightest one. Every other set that
they may train is tried at once. A plan is better if it leaves fewer blocks untrained, then if its bias is less, then if
it leaves less unused.
"""

from dataclasses import dataclass

import numpy as np

from edgefl.planning.freezing.bias import Flags, Reals
from edgefl.planning.freezing.candidate_sets import Integers
from edgefl.planning.freezing.problem import Problem

__all__ = ["improve", "sample_choices"]

_SAME = 1e-11
_FEW = 200
"""In a larger fleet a single device is not worth a move."""
_UNCOVERED = 1e6
"""The cost of an untrained block: more than any plan that covers all blocks."""


@dataclass(slots=True, eq=False)
class _Subgroup:
    """The devices of one group that train the same set."""

    group: int
    chosen: int
    devices: Integers
    weight: float


def sample_choices(problem: Problem, generator: np.random.Generator, most: int) -> list[Integers]:
    """Return the sets that each group tries: all that it may train, or a sample in which no block is rare."""
    found = []
    for group in problem.groups:
        choices = group.choices
        if choices.size > most:
            kept = [generator.choice(choices, most, replace=False), choices[-16:]]
            for block in range(problem.sizes.size):
                with_it = choices[problem.pool[choices, block]]
                kept.append(generator.choice(with_it, min(with_it.size, 4), replace=False))
            choices = np.unique(np.concatenate(kept))
        found.append(choices)
    return found


def improve(problem: Problem, chosen: Integers, choices: list[Integers], *, rounds: int) -> Integers:
    """Return a plan that no single move improves, or the best after this many rounds over all subgroups."""
    subgroups = _subgroups(problem, chosen)
    cost = _cost(problem, subgroups)
    for _ in range(rounds):
        before = cost
        for turn in sorted(subgroups, key=lambda subgroup: (-subgroup.weight, subgroup.group, subgroup.chosen)):
            here = [
                subgroup for subgroup in subgroups if (subgroup.group, subgroup.chosen) == (turn.group, turn.chosen)
            ]
            for moving in _movable(problem, here[0]) if here else ():
                move = _best_move(problem, subgroups, here[0], moving, choices[turn.group], cost)
                if move is not None:
                    target, cost = move
                    subgroups = _moved(subgroups, here[0], moving, target, problem)
                    break
        if cost == before:
            break
    result = chosen.copy()
    for subgroup in subgroups:
        result[subgroup.devices] = subgroup.chosen
    return result


def _subgroups(problem: Problem, chosen: Integers) -> list[_Subgroup]:
    subgroups = []
    for number, group in enumerate(problem.groups):
        for row in np.unique(chosen[group.devices]):
            devices = group.devices[chosen[group.devices] == row]
            subgroups.append(_Subgroup(number, int(row), devices, float(problem.weights[devices].sum())))
    return subgroups


def _movable(problem: Problem, subgroup: _Subgroup) -> list[Integers]:
    """Return which devices to move: all, the heavier half, the lightest. Devices are sorted, heaviest first."""
    movable = [subgroup.devices]
    if subgroup.devices.size > 2:
        movable.append(subgroup.devices[::2])
    if subgroup.devices.size > 1 and len(problem.devices) <= _FEW:
        movable.append(subgroup.devices[-1:])
    return movable


def _cost(problem: Problem, subgroups: list[_Subgroup]) -> tuple[float, float]:
    sets = problem.pool[[subgroup.chosen for subgroup in subgroups]]
    weights = np.array([subgroup.weight for subgroup in subgroups])
    coverage = weights @ sets
    missing = int(np.count_nonzero(coverage <= 0))
    least = np.where(sets, coverage, np.inf).min(axis=1)
    unfilled = sum(-float(problem.fill[subgroup.chosen]) * subgroup.devices.size for subgroup in subgroups)
    return _UNCOVERED * missing + float(np.sum(weights / least)), unfilled


def _best_move(
    problem: Problem,
    subgroups: list[_Subgroup],
    subgroup: _Subgroup,
    moving: Integers,
    choices: Integers,
    cost: tuple[float, float],
) -> tuple[int, tuple[float, float]] | None:
    """Return the best set to move some devices of a subgroup to, and the plan's cost then; None if no move helps."""
    weight = subgroup.weight if moving.size == subgroup.devices.size else float(problem.weights[moving].sum())
    stay = [other for other in subgroups if other is not subgroup]
    rows = np.array([other.chosen for other in stay], np.int64)
    weights = np.array([other.weight for other in stay], np.float64)
    if moving.size < subgroup.devices.size:
        rows, weights = np.append(rows, subgroup.chosen), np.append(weights, subgroup.weight - weight)
    # Subgroups of different groups that train the same set pay the same.
    _, firsts, same = np.unique(rows, return_index=True, return_inverse=True)
    together: Reals = np.bincount(same, weights, firsts.size).astype(np.float64)
    bias = _costs(problem.pool[rows[firsts]], together, problem.pool[choices], weight)
    unfilled = cost[1] + moving.size * (float(problem.fill[subgroup.chosen]) - problem.fill[choices])
    best = int(np.lexsort((choices, unfilled, np.round(bias, 10)))[0])
    found = float(bias[best]), float(unfilled[best])
    if found[0] < cost[0] - _SAME or (found[0] < cost[0] + _SAME and found[1] < cost[1] - 0.5):
        return int(choices[best]), found
    return None


def _costs(sets: Flags, weights: Reals, tried: Flags, weight: float) -> Reals:
    """Return 1 + bias of a plan in which a further subgroup of this weight trains each of the tried sets."""
    coverage = weights @ sets + weight * tried
    missing = np.count_nonzero(coverage < 1e-12, axis=1)
    total: Reals = weight / np.where(tried, coverage, np.inf).min(axis=1)
    least = np.where(sets[:, None], coverage, np.inf).min(axis=2)
    total += weights @ (1 / least)
    total += _UNCOVERED * missing
    return total


def _moved(
    subgroups: list[_Subgroup], subgroup: _Subgroup, moving: Integers, target: int, problem: Problem
) -> list[_Subgroup]:
    result = [other for other in subgroups if other is not subgroup]
    left = subgroup.devices[~np.isin(subgroup.devices, moving)]
    if left.size:
        result.append(_Subgroup(subgroup.group, subgroup.chosen, left, float(problem.weights[left].sum())))
    joined = [other for other in result if other.group == subgroup.group and other.chosen == target]
    devices = np.concatenate([moving, *(other.devices for other in joined)])
    devices = devices[np.lexsort((devices, -problem.weights[devices]))]
    result = [other for other in result if other not in joined]
    result.append(_Subgroup(subgroup.group, target, devices, float(problem.weights[devices].sum())))
    return sorted(result, key=lambda other: (other.group, other.chosen))
