"""The baselines that the paper compares with: random and sequential masking.

Both obey the rules of every planner: sets within the budget that fill it. A block that is left to no device then goes
to a device that can be spared.

Random layer-wise masking: Sidahmed et al. 2021, Pfeiffer et al. 2022. The paper masks 'sequentially' and says no more;
here a device prefers, among the sets that it may train, those with the first block, among these those with the second
block, and so on.
"""

import numpy as np

from edgefl.planning.freezing.candidate_sets import Integers
from edgefl.planning.freezing.cover import cover_every_block
from edgefl.planning.freezing.problem import Problem

__all__ = ["random_plan", "sequential_plan"]


def random_plan(problem: Problem, seed: int) -> Integers:
    """Return a plan in which every device trains a random set; the same seed gives the same plan."""
    generator = np.random.default_rng([seed, 1])
    chosen = np.empty(len(problem.devices), np.int64)
    for group in problem.groups:
        chosen[group.devices] = generator.choice(group.choices, group.devices.size)
    return cover_every_block(problem, chosen)


def sequential_plan(problem: Problem, *, from_head: bool = True) -> Integers:
    """Return the plan that trains blocks in order, by default from the head, where gradients have the shortest way."""
    chosen = np.empty(len(problem.devices), np.int64)
    for group in problem.groups:
        sets = problem.pool[group.choices]
        order = sets[:, ::-1] if from_head else sets
        # lexsort's last key comes first.
        chosen[group.devices] = group.choices[int(np.lexsort(~order.T[::-1])[0])]
    return cover_every_block(problem, chosen)
