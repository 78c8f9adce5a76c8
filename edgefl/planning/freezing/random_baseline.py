"""The baseline `random`: every device trains a random one of the sets that it may train.

The paper compares with random layer-wise masking (Sidahmed et al. 2021, Pfeiffer et al. 2022). Here chance obeys the
same rules as every planner: sets within budget that fill it, and a block that chance left to nobody is given to a
device that can be spared.
"""

import numpy as np

from edgefl.planning.freezing.candidate_sets import Integers
from edgefl.planning.freezing.cover import covered
from edgefl.planning.freezing.problem import Problem

__all__ = ["random_plan"]


def random_plan(problem: Problem, seed: int) -> Integers:
    """Return a random plan, the same for the same seed."""
    generator = np.random.default_rng([seed, 1])
    chosen = np.empty(len(problem.devices), np.int64)
    for family in problem.families:
        chosen[family.devices] = generator.choice(family.choices, family.devices.size)
    return covered(problem, chosen)
