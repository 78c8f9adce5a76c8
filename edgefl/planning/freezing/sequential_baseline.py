"""The baseline `sequential`: every device trains blocks in order, from the input or from the head, as many as it may.

The paper masks 'sequentially' and says no more. Here a device has, of the sets that it may train, the one with the
first block if there is one, of those the one with the second block, and so on. Blocks that nobody has then are given
to devices that can be spared.
"""

import numpy as np

from edgefl.planning.freezing.candidate_sets import Integers
from edgefl.planning.freezing.cover import covered
from edgefl.planning.freezing.problem import Problem

__all__ = ["sequential_plan"]


def sequential_plan(problem: Problem, *, from_head: bool = True) -> Integers:
    """Return the plan that trains blocks in order. From the head is the default: gradients have the shortest way."""
    chosen = np.empty(len(problem.devices), np.int64)
    for family in problem.families:
        sets = problem.pool[family.choices]
        order = sets[:, ::-1] if from_head else sets
        # lexsort's last key comes first.
        chosen[family.devices] = family.choices[int(np.lexsort(~order.T[::-1])[0])]
    return covered(problem, chosen)
