"""The planner of PerFedMask: which layers each device trains and which it leaves frozen.

plan.py            the entry point: from a fleet and a model to a plan
bias.py            the objective, and why
blocks.py          what is trained or frozen as a whole
device.py          a device's data and budget
set_costs.py       what sets of blocks cost: gradients pass through everything above
candidate_sets.py  the sets of blocks to choose from
device_kinds.py    which of them a device may train
problem.py         the planning problem in numbers, and a candidate plan
relaxation.py      a linear program: a lower bound on every plan, and the exact problem
solver.py          HiGHS; the only module that imports scipy
cover.py           makes sure that some device trains every block
exact.py           the best plan of a small fleet
enumeration.py     the best plan of a very small fleet, by trying all
approximate.py     a good plan of any fleet
search.py          improves a plan move by move
sca.py             the paper's own planner
baselines.py       the paper's baselines: random and sequential masking
"""

from edgefl.planning.freezing.blocks import Block, freezing_blocks
from edgefl.planning.freezing.device import FreezingDevice
from edgefl.planning.freezing.plan import FreezingAssignment, FreezingPlan, PlanningMethod, freezing_plan

__all__ = [
    "Block",
    "FreezingDevice",
    "FreezingAssignment",
    "FreezingPlan",
    "PlanningMethod",
    "freezing_blocks",
    "freezing_plan",
]
