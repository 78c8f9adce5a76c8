"""The paper's own planner, for comparison: successive convex approximation (appendix H, algorithm 3).

Masks may be anything between 0 and 1, and what is not convex is replaced by its first-order approximation at the last
point, again and again:

    k >= p m^2 / S                                       (32), convex
    ((k + S)^2 - (k^2 + S^2 linearised)) / 2 <= p m      (34) with (36b)
    sum of m - (m^2 linearised) <= 0                     (35a) with (36a)

Two things differ. The authors use MOSEK for the quadratic constraints; here they are linear programs with tangents of
the convex functions, which is the same up to the number of tangents. And (35a), linearised at a point that is already 0
or 1, allows only that point, so algorithm 3 started from a feasible plan, as the paper says, stays there. As in the
convex-concave procedure that the paper cites (Shen et al. 2016), it is a growing penalty here.

The last point is rounded to the nearest set that each device may train. The devices of a group move in a few subgroups.
"""

from dataclasses import dataclass

import numpy as np

from edgefl.planning.freezing.bias import Reals
from edgefl.planning.freezing.candidate_sets import Integers
from edgefl.planning.freezing.cover import cover_every_block
from edgefl.planning.freezing.problem import DeviceGroup, Problem
from edgefl.planning.freezing.solver import LinearProgram

__all__ = ["sca_plan"]

_SUBGROUPS = 32
"""The approximate number of subgroups in the whole fleet."""
_ROUNDS = 12
_PENALTY = (0.01, 1.6)
"""The initial cost of a mask that is neither 0 nor 1, and its factor per round."""
_TANGENTS = (0.5, 1.0, 1.5)


@dataclass(frozen=True, slots=True, eq=False)
class _Subgroup:
    group: DeviceGroup
    devices: Integers
    weight: float


def sca_plan(problem: Problem, seed: int) -> Integers:
    """Return the plan that successive convex approximation ends with."""
    generator = np.random.default_rng([seed, 3])
    subgroups = _subgroups(problem)
    able = np.stack([problem.pool[subgroup.group.choices].any(axis=0) for subgroup in subgroups])
    mask = able * generator.uniform(0.3, 0.7, able.shape)
    penalty, growth = _PENALTY
    for _ in range(_ROUNDS):
        after = _step(problem, subgroups, mask, penalty)
        if after is None or np.abs(after - mask).max() < 1e-4:
            break
        mask, penalty = after, penalty * growth
    chosen = np.empty(len(problem.devices), np.int64)
    for subgroup, values in zip(subgroups, mask, strict=True):
        away = np.abs(problem.pool[subgroup.group.choices] - values) @ problem.sizes
        chosen[subgroup.devices] = subgroup.group.choices[int(np.argmin(away))]
    return cover_every_block(problem, chosen)


def _subgroups(problem: Problem) -> list[_Subgroup]:
    each = max(1, _SUBGROUPS // len(problem.groups))
    return [
        _Subgroup(
            group,
            group.devices[first::each],
            float(problem.weights[group.devices[first::each]].sum()),
        )
        for group in problem.groups
        for first in range(min(each, group.devices.size))
    ]


def _step(problem: Problem, subgroups: list[_Subgroup], before: Reals, penalty: float) -> Reals | None:
    """Solve the program that is convex around the last masks; return the next masks."""
    program, sizes = LinearProgram(), problem.sizes / problem.dimension
    weights = np.array([subgroup.weight for subgroup in subgroups])
    coverage = np.maximum(weights @ before, 1e-3)
    masks, shares = [], []
    for subgroup, own in zip(subgroups, before, strict=True):
        budget = float(problem.budgets[subgroup.devices].min()) / problem.dimension
        # The penalty is (35a); unused budget costs its share of d, as in (9).
        m = program.variables(own.size, cost=penalty * (1 - 2 * own) - subgroup.weight * sizes, high=1.0)
        k = program.variables(own.size, cost=-sizes, high=1.0)
        most = program.variables(1, cost=1.0)
        program.row((m, sizes), high=budget)
        for share in k:
            program.row((most, 1.0), (share, -1.0), low=0)
        masks.append(m)
        shares.append(k)
    table = np.stack(masks)
    for number, subgroup in enumerate(subgroups):
        for block in range(problem.sizes.size):
            column = table[:, block], weights
            mine = int(masks[number][block]), int(shares[number][block])
            _share_rows(program, subgroup.weight, mine, column, float(before[number, block]), float(coverage[block]))
    values = program.solve().values
    return None if values is None else np.clip(values[table], 0.0, 1.0)


def _share_rows(
    program: LinearProgram, weight: float, mine: tuple[int, int], column: tuple[Integers, Reals], m: float, s: float
) -> None:
    """Tie a device's share k to its mask m and the block's coverage S = sum of weight * mask."""
    mask, share = mine
    variables, factors = column
    for at in _TANGENTS:
        slope = at * m / s
        program.row((share, 1.0), (mask, -2 * weight * slope), (variables, weight * slope**2 * factors), low=0)
    k = weight * m / s
    for at in _TANGENTS:
        t = at * (k + s)
        program.row((share, t - k), (variables, (t - s) * factors), (mask, -weight), high=(t**2 - k**2 - s**2) / 2)
