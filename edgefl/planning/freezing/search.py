"""Improving a plan step by step: move some devices of a family to another set, as long as that helps.

Devices that train the same set are moved together: all of them, half of them, or the lightest one. Every other set that
they may train is tried at once. A plan is better if fewer blocks are left to nobody, then if its bias is less, then if
it leaves less unused.
"""

from dataclasses import dataclass

import numpy as np

from edgefl.planning.freezing.bias import Flags, Reals
from edgefl.planning.freezing.candidate_sets import Integers
from edgefl.planning.freezing.problem import Problem

__all__ = ["improved", "thinned"]

_SAME = 1e-11
_FEW = 200
"""In a larger fleet one device is not worth a move."""
_UNCOVERED = 1e6
"""What a block that nobody trains costs: more than any plan that covers all."""


@dataclass(slots=True, eq=False)
class _Party:
    """Devices of one family that train the same set."""

    family: int
    chosen: int
    devices: Integers
    weight: float


def thinned(problem: Problem, generator: np.random.Generator, most: int) -> list[Integers]:
    """Return the sets that each family tries: all it may have, or a sample in which no block is rare."""
    found = []
    for family in problem.families:
        choices = family.choices
        if choices.size > most:
            kept = [generator.choice(choices, most, replace=False), choices[-16:]]
            for block in range(problem.sizes.size):
                with_it = choices[problem.pool[choices, block]]
                kept.append(generator.choice(with_it, min(with_it.size, 4), replace=False))
            choices = np.unique(np.concatenate(kept))
        found.append(choices)
    return found


def improved(problem: Problem, chosen: Integers, choices: list[Integers], *, rounds: int) -> Integers:
    """Return a plan that no single move makes better, or what so many rounds through all parties reach."""
    parties = _parties(problem, chosen)
    cost = _cost(problem, parties)
    for _ in range(rounds):
        before = cost
        for turn in sorted(parties, key=lambda party: (-party.weight, party.family, party.chosen)):
            here = [party for party in parties if (party.family, party.chosen) == (turn.family, turn.chosen)]
            for part in _parts(problem, here[0]) if here else ():
                move = _best_move(problem, parties, here[0], part, choices[turn.family], cost)
                if move is not None:
                    target, cost = move
                    parties = _moved(parties, here[0], part, target, problem)
                    break
        if cost == before:
            break
    result = chosen.copy()
    for party in parties:
        result[party.devices] = party.chosen
    return result


def _parties(problem: Problem, chosen: Integers) -> list[_Party]:
    parties = []
    for number, family in enumerate(problem.families):
        for row in np.unique(chosen[family.devices]):
            devices = family.devices[chosen[family.devices] == row]
            parties.append(_Party(number, int(row), devices, float(problem.weights[devices].sum())))
    return parties


def _parts(problem: Problem, party: _Party) -> list[Integers]:
    """Return whom to move: all, the heavier half, the lightest. Devices are sorted, the heaviest first."""
    parts = [party.devices]
    if party.devices.size > 2:
        parts.append(party.devices[::2])
    if party.devices.size > 1 and len(problem.devices) <= _FEW:
        parts.append(party.devices[-1:])
    return parts


def _cost(problem: Problem, parties: list[_Party]) -> tuple[float, float]:
    sets = problem.pool[[party.chosen for party in parties]]
    weights = np.array([party.weight for party in parties])
    coverage = weights @ sets
    missing = int(np.count_nonzero(coverage <= 0))
    least = np.where(sets, coverage, np.inf).min(axis=1)
    unfilled = sum(-float(problem.fill[party.chosen]) * party.devices.size for party in parties)
    return _UNCOVERED * missing + float(np.sum(weights / least)), unfilled


def _best_move(
    problem: Problem,
    parties: list[_Party],
    party: _Party,
    part: Integers,
    choices: Integers,
    cost: tuple[float, float],
) -> tuple[int, tuple[float, float]] | None:
    """Return the set that it is best to move a part of a party to, and what the plan costs then; None if none helps."""
    weight = party.weight if part.size == party.devices.size else float(problem.weights[part].sum())
    stay = [other for other in parties if other is not party]
    rows = np.array([other.chosen for other in stay], np.int64)
    weights = np.array([other.weight for other in stay], np.float64)
    if part.size < party.devices.size:
        rows, weights = np.append(rows, party.chosen), np.append(weights, party.weight - weight)
    # Parties of different families that train the same set pay the same.
    _, firsts, same = np.unique(rows, return_index=True, return_inverse=True)
    together: Reals = np.bincount(same, weights, firsts.size).astype(np.float64)
    bias = _costs(problem.pool[rows[firsts]], together, problem.pool[choices], weight)
    unfilled = cost[1] + part.size * (float(problem.fill[party.chosen]) - problem.fill[choices])
    best = int(np.lexsort((choices, unfilled, np.round(bias, 10)))[0])
    found = float(bias[best]), float(unfilled[best])
    if found[0] < cost[0] - _SAME or (found[0] < cost[0] + _SAME and found[1] < cost[1] - 0.5):
        return int(choices[best]), found
    return None


def _costs(sets: Flags, weights: Reals, tried: Flags, weight: float) -> Reals:
    """Return 1 + bias of a plan in which a further party of this weight trains each of the tried sets."""
    coverage = weights @ sets + weight * tried
    missing = np.count_nonzero(coverage < 1e-12, axis=1)
    total: Reals = weight / np.where(tried, coverage, np.inf).min(axis=1)
    least = np.where(sets[:, None], coverage, np.inf).min(axis=2)
    total += weights @ (1 / least)
    total += _UNCOVERED * missing
    return total


def _moved(parties: list[_Party], party: _Party, part: Integers, target: int, problem: Problem) -> list[_Party]:
    result = [other for other in parties if other is not party]
    left = party.devices[~np.isin(party.devices, part)]
    if left.size:
        result.append(_Party(party.family, party.chosen, left, float(problem.weights[left].sum())))
    joined = [other for other in result if other.family == party.family and other.chosen == target]
    devices = np.concatenate([part, *(other.devices for other in joined)])
    devices = devices[np.lexsort((devices, -problem.weights[devices]))]
    result = [other for other in result if other not in joined]
    result.append(_Party(party.family, target, devices, float(problem.weights[devices].sum())))
    return sorted(result, key=lambda other: (other.family, other.chosen))
