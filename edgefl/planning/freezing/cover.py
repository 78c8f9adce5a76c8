"""Making sure that every block is trained by somebody.

First by giving a block that nobody trains to a device that leaves none behind; where that goes in circles, by a small
program that says whether the fleet can cover the model at all.
"""

import numpy as np

from edgefl.planning.freezing.bias import Flags
from edgefl.planning.freezing.candidate_sets import Integers
from edgefl.planning.freezing.problem import Problem, UncoveredError
from edgefl.planning.freezing.solver import LinearProgram

__all__ = ["covered"]


def covered(problem: Problem, chosen: Integers) -> Integers:
    """Return the plan, changed for as few devices as it takes to leave no block to nobody. Raises if none can."""
    chosen = chosen.copy()
    for _ in range(2 * problem.sizes.size):
        counts = problem.pool[chosen].sum(axis=0)
        missing = np.flatnonzero(counts == 0)
        if not missing.size:
            return chosen
        if not _give(problem, chosen, counts, missing):
            break
    counts = problem.pool[chosen].sum(axis=0)
    return chosen if counts.all() else _program(problem, chosen)


def _give(problem: Problem, chosen: Integers, counts: Integers, missing: Integers) -> bool:
    """Let one device train missing blocks, if any can without leaving another block to nobody."""
    best: tuple[int, int, int] | None = None
    for family in problem.families:
        sets = problem.pool[family.choices]
        gain = sets[:, missing].sum(axis=1)
        for row in np.unique(chosen[family.devices]):
            sole = problem.pool[row] & (counts == 1)
            gains = np.where((sets & sole).sum(axis=1) == sole.sum(), gain, 0)
            place = int(np.argmax(gains))
            if gains[place] and (best is None or gains[place] > best[0]):
                device = int(family.devices[chosen[family.devices] == row][-1])
                best = int(gains[place]), device, int(family.choices[place])
    if best is not None:
        chosen[best[1]] = best[2]
    return best is not None


def _program(problem: Problem, chosen: Integers) -> Integers:
    """Choose how many devices of each family train which set so that all blocks are covered."""
    program = LinearProgram()
    lists = [_useful(problem.pool[family.choices]) for family in problem.families]
    counts = [
        program.variables(rows.size, high=family.devices.size, whole=True)
        for family, rows in zip(problem.families, lists, strict=True)
    ]
    for family, variables in zip(problem.families, counts, strict=True):
        program.row((variables, 1.0), high=family.devices.size)
    has = program.variables(problem.sizes.size, cost=-1.0, high=1.0, whole=True)
    for block in range(problem.sizes.size):
        terms = [
            (variables[problem.pool[family.choices[rows], block]], 1.0)
            for family, rows, variables in zip(problem.families, lists, counts, strict=True)
        ]
        program.row(*terms, (has[block], -1.0), low=0)
    values = program.solve().values
    if values is None:
        raise RuntimeError("the solver found no count of devices, not even zero")
    if not (values[has] > 0.5).all():
        names = tuple(block.name for block, there in zip(problem.blocks, values[has], strict=True) if there < 0.5)
        raise UncoveredError.of(f"the devices together cannot train all blocks: {names[0]!r} would be left out", names)
    result = chosen.copy()
    for family, rows, variables in zip(problem.families, lists, counts, strict=True):
        times = np.round(values[variables]).astype(np.int64)
        wanted = np.repeat(family.choices[rows], times)
        result[family.devices[: wanted.size]] = wanted
    return result


def _useful(sets: Flags) -> Integers:
    """Return the sets that are not part of a larger one: for covering, the others are of no use."""
    if len(sets) > 2000:
        return np.arange(len(sets))
    inner = (sets[:, None] <= sets[None]).all(axis=2)
    return np.flatnonzero(inner.sum(axis=1) == 1)
