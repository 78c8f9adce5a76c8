"""Makes sure that some device trains every block.

First it gives an untrained block to a device that leaves no other block untrained. If that goes in circles, a small
program decides whether the fleet can cover the model at all.
"""

import numpy as np

from edgefl.planning.freezing.bias import Flags
from edgefl.planning.freezing.candidate_sets import Integers
from edgefl.planning.freezing.problem import Problem, UncoveredError
from edgefl.planning.freezing.solver import LinearProgram

__all__ = ["cover_every_block"]


def cover_every_block(problem: Problem, chosen: Integers) -> Integers:
    """Return the plan, changed for as few devices as possible so that every block is trained; raise if that is
    impossible.
    """
    chosen = chosen.copy()
    for _ in range(2 * problem.sizes.size):
        counts = problem.pool[chosen].sum(axis=0)
        missing = np.flatnonzero(counts == 0)
        if not missing.size:
            return chosen
        if not _assign_missing(problem, chosen, counts, missing):
            break
    counts = problem.pool[chosen].sum(axis=0)
    return chosen if counts.all() else _program(problem, chosen)


def _assign_missing(problem: Problem, chosen: Integers, counts: Integers, missing: Integers) -> bool:
    """Let one device train missing blocks, if that leaves no other block untrained."""
    best: tuple[int, int, int] | None = None
    for group in problem.groups:
        sets = problem.pool[group.choices]
        gain = sets[:, missing].sum(axis=1)
        for row in np.unique(chosen[group.devices]):
            sole = problem.pool[row] & (counts == 1)
            gains = np.where((sets & sole).sum(axis=1) == sole.sum(), gain, 0)
            place = int(np.argmax(gains))
            if gains[place] and (best is None or gains[place] > best[0]):
                device = int(group.devices[chosen[group.devices] == row][-1])
                best = int(gains[place]), device, int(group.choices[place])
    if best is not None:
        chosen[best[1]] = best[2]
    return best is not None


def _program(problem: Problem, chosen: Integers) -> Integers:
    """Choose how many devices of each group train which set so that all blocks are covered."""
    program = LinearProgram()
    lists = [_useful(problem.pool[group.choices]) for group in problem.groups]
    counts = [
        program.variables(rows.size, high=group.devices.size, whole=True)
        for group, rows in zip(problem.groups, lists, strict=True)
    ]
    for group, variables in zip(problem.groups, counts, strict=True):
        program.row((variables, 1.0), high=group.devices.size)
    has = program.variables(problem.sizes.size, cost=-1.0, high=1.0, whole=True)
    for block in range(problem.sizes.size):
        terms = [
            (variables[problem.pool[group.choices[rows], block]], 1.0)
            for group, rows, variables in zip(problem.groups, lists, counts, strict=True)
        ]
        program.row(*terms, (has[block], -1.0), low=0)
    values = program.solve().values
    if values is None:
        raise RuntimeError("the solver found no count of devices, not even zero")
    if not (values[has] > 0.5).all():
        names = tuple(block.name for block, there in zip(problem.blocks, values[has], strict=True) if there < 0.5)
        raise UncoveredError.of(f"the devices together cannot train all blocks: {names[0]!r} is left out", names)
    result = chosen.copy()
    for group, rows, variables in zip(problem.groups, lists, counts, strict=True):
        times = np.round(values[variables]).astype(np.int64)
        wanted = np.repeat(group.choices[rows], times)
        result[group.devices[: wanted.size]] = wanted
    return result


def _useful(sets: Flags) -> Integers:
    """Return the sets that are not part of a larger one: the others do not help to cover blocks."""
    if len(sets) > 2000:
        return np.arange(len(sets))
    inner = (sets[:, None] <= sets[None]).all(axis=2)
    return np.flatnonzero(inner.sum(axis=1) == 1)
