"""A linear program below the bias: a lower bound on every plan and, with integers, the exact problem.

Write x_T for the share of a group of devices (weight P) that trains the set T, S_j for a block's coverage, and u_j = 1
/ S_j. A device that trains T pays max over T of u_j, at least 1; z_T is what it pays above that. In units of d,

    bias = sum of z_T        (the payments add up to 1 + bias, and all weights to 1)

For each group and block, with s_j = P * sum of x_T over T with j, and q_j = s_j u_j:

    sum of z_T over T with j  >=  q_j - s_j        a device that trains j pays at least u_j
    sum over groups of q_j    =   1                since S_j u_j = 1

Only q_j = s_j u_j is not linear. If a group is one device, s_j is 0 or P and four inequalities (McCormick's) express it
exactly: that is the exact program. If a group has many devices, the same inequalities with any shares in between are a
relaxation: every plan satisfies them, so their least bias is a lower bound.

The relaxation is tighter the less S_j can vary, so a block's range may be cut into pieces, of which the solver chooses
one (piecewise McCormick).

If a group has too many sets to list, its sets are relaxed too: to a largest and a smallest number of parameters.
"""

from dataclasses import dataclass

import numpy as np

from edgefl.planning.freezing.bias import Flags, Reals
from edgefl.planning.freezing.candidate_sets import Integers
from edgefl.planning.freezing.problem import DeviceGroup, Problem
from edgefl.planning.freezing.solver import LinearProgram

__all__ = ["ProgramGroup", "lower_bound", "program_of"]

MOST_COLUMNS = 3000
"""If all groups together have more sets than this, those with many sets are bounded by their sums."""
MOST_PAIRS = 300
"""The number of groups times blocks of a program that takes about a second."""
_MARGIN = 1e-7
"""The solver's own tolerance, subtracted from every bound."""
_TANGENTS = 8
_STEEPEST = 1e4
"""Factors above this drown in the solver's tolerance and may prove anything. A relaxation leaves them out, which makes
it slightly lower; the lightest device of 100,000 can cause factors of a million."""


@dataclass(frozen=True, slots=True, eq=False)
class ProgramGroup:
    """Devices that the program treats as one."""

    device_group: DeviceGroup
    weight: float
    lightest: float
    """The least weight of one of its devices."""
    sets: Integers | None
    """Rows of the pool, or None if there are too many to list."""
    able: Flags
    forced: Flags
    """Blocks that all of its sets have."""


def lower_bound(problem: Problem, *, pieces: int = 1, nodes: int = 200) -> float:
    """Return a lower bound on the bias of every plan, in units of d.

    More pieces give a better bound in more time: the solver then chooses a piece for each block, and visits at most
    this many nodes.
    """
    device_groups = _merged(problem)
    groups = [_group(problem, device_group, MOST_COLUMNS // len(device_groups)) for device_group in device_groups]
    # See `bias.py`: no better than leaving out the devices that cannot train the block that fewest can.
    simple = 1.0 - float(np.min(np.sum([group.weight * group.able for group in groups], axis=0)))
    answer = program_of(problem, groups, pieces=pieces)[0].solve(nodes=nodes if pieces > 1 else None)
    return max(0.0, simple, answer.bound - _MARGIN)


def _merged(problem: Problem) -> list[DeviceGroup]:
    """Merge neighbouring groups, as if each device could do what any of them can, until the program is small.

    What is possible then includes what is possible now, so the bound still holds.
    """
    each = -(-len(problem.groups) * len(problem.blocks) // MOST_PAIRS)
    parts = [problem.groups[start : start + each] for start in range(0, len(problem.groups), each)]
    return [
        DeviceGroup(
            np.concatenate([device_group.devices for device_group in part]),
            sum(device_group.weight for device_group in part),
            np.empty(0, np.int64),
            np.unique(np.concatenate([device_group.choices_of_any for device_group in part])),
            min(device_group.least for device_group in part),
            max(device_group.most for device_group in part),
        )
        for part in parts
    ]


def _group(problem: Problem, device_group: DeviceGroup, most_sets: int) -> ProgramGroup:
    listed = problem.complete and device_group.choices_of_any.size <= most_sets
    able = problem.able(device_group) if problem.complete else problem.sizes <= device_group.most
    # A set that must have more parameters than all blocks but one contains that one.
    forced = problem.dimension - problem.sizes < device_group.least
    if problem.complete:
        forced = np.logical_and.reduce(problem.pool[device_group.choices_of_any])
    lightest = float(problem.weights[device_group.devices].min())
    return ProgramGroup(
        device_group, device_group.weight, lightest, device_group.choices_of_any if listed else None, able, forced
    )


def program_of(
    problem: Problem, groups: list[ProgramGroup], *, whole: bool = False, pieces: int = 1
) -> tuple[LinearProgram, list[Integers]]:
    """Return the program, and for each group the variables that say which of its sets it trains."""
    program = LinearProgram()
    sure = np.sum([group.weight * group.forced for group in groups], axis=0)
    least = np.maximum(sure, min(group.lightest for group in groups))
    most = np.sum([group.weight * group.able for group in groups], axis=0)
    covered, above, shares = [], [], []
    for group in groups:
        s = program.variables(problem.sizes.size, low=group.weight * group.forced, high=group.weight * group.able)
        if group.sets is None:
            x, z = np.empty(0, np.int64), _summed(program, problem, group, s)
        else:
            x, z = _listed(program, problem, group, s, whole=whole)
        covered.append(s)
        above.append(z)
        shares.append(x)
    for block in range(problem.sizes.size):
        count = pieces if most[block] > least[block] * 1.01 else 1
        edges = np.geomspace(least[block], most[block], count + 1)
        here = [s[block] for s in covered]
        _block_rows(program, groups, block, edges, here, [z[block] for z in above], exact=whole)
    return program, shares


def _block_rows(
    program: LinearProgram,
    groups: list[ProgramGroup],
    block: int,
    edges: Reals,
    s: list[np.int64],
    above: list[Integers],
    *,
    exact: bool,
) -> None:
    """Tie the coverage of one block to what its trainers pay. Its coverage lies in one piece between two edges."""
    count = edges.size - 1
    chosen = program.variables(count, high=1.0, low=1.0 if count == 1 else 0.0, whole=count > 1)
    program.row((chosen, 1.0), low=1, high=1)
    parts, paid = [], []
    for group, own, extra in zip(groups, s, above, strict=True):
        part = program.variables(count, high=group.weight if group.able[block] else 0.0)
        pays = program.variables(count)
        program.row((part, 1.0), (own, -1.0), low=0, high=0)
        program.row((extra, 1.0), (pays, -1.0), (own, 1.0), low=0)
        parts.append(part)
        paid.append(pays)
    inverse = program.variables(count)
    for piece in range(count):
        ends = (float(edges[piece]), float(edges[piece + 1]))
        columns = np.array([part[piece] for part in parts]), np.array([pays[piece] for pays in paid])
        _piece_rows(program, groups, ends, int(chosen[piece]), int(inverse[piece]), *columns, exact=exact)


def _piece_rows(
    program: LinearProgram,
    groups: list[ProgramGroup],
    ends: tuple[float, float],
    on: int,
    u: int,
    s: Integers,
    q: Integers,
    *,
    exact: bool,
) -> None:
    """Require, if this piece is on, that coverage lies between two ends, u is about its inverse, and q is about s times
    u.
    """
    low, high = ends
    steepest = np.inf if exact else _STEEPEST
    program.row((q, 1.0), (on, -1.0), low=0, high=0)
    program.row((s, 1.0), (on, -low), low=0)
    program.row((s, 1.0), (on, -high), high=0)
    # The inverse lies above its tangents and below the chord between its ends.
    for at in np.geomspace(max(low, min(high, _STEEPEST**-0.5)), high, _TANGENTS):
        program.row((u, 1.0), (s, 1 / at**2), (on, -2 / at), low=0)
    if 1 / (low * high) <= steepest:
        program.row((u, 1.0), (s, 1 / (low * high)), (on, -1 / low - 1 / high), high=0)
    for number, group in enumerate(groups):
        p, mine, pays = group.weight, s[number], q[number]
        program.row((mine, 1.0), (on, -p), high=0)
        program.row((pays, 1.0), (mine, -1 / high), low=0)
        if 1 / max(low, group.lightest) <= steepest:
            program.row((pays, 1.0), (mine, -1 / max(low, group.lightest)), high=0)
        program.row((pays, 1.0), (u, -p), (mine, -1 / high), (on, p / high), high=0)
        if 1 / low <= steepest:
            program.row((pays, 1.0), (u, -p), (mine, -1 / low), (on, p / low), low=0)


def _listed(
    program: LinearProgram, problem: Problem, group: ProgramGroup, s: Integers, *, whole: bool
) -> tuple[Integers, list[Integers]]:
    """Add the shares x and the payments z of each set; return x, and the z of the sets with each block."""
    assert group.sets is not None
    sets = problem.pool[group.sets]
    x = program.variables(len(sets), high=1.0, whole=whole)
    z = program.variables(len(sets), cost=1.0)
    program.row((x, 1.0), low=1, high=1)
    for block in range(problem.sizes.size):
        program.row((x[sets[:, block]], group.weight), (s[block], -1.0), low=0, high=0)
    return x, [z[sets[:, block]] for block in range(problem.sizes.size)]


def _summed(program: LinearProgram, problem: Problem, group: ProgramGroup, s: Integers) -> list[Integers]:
    """Bound the sets by their sums of parameters; return for each block what its trainers pay above the least."""
    sizes, device_group = problem.sizes / problem.dimension, group.device_group
    least, most = device_group.least / problem.dimension, device_group.most / problem.dimension
    program.row((s, sizes), low=least * group.weight, high=most * group.weight)
    total = program.variables(1, cost=1.0)
    above = program.variables(problem.sizes.size, high=np.where(group.able, np.inf, 0.0))
    program.row((above, sizes), (total, -most), high=0)
    for block in above:
        program.row((block, 1.0), (total, -1.0), high=0)
    return [np.array([block]) for block in above]
