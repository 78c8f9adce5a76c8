"""Which layers each device trains and which it leaves frozen: the planner of PerFedMask.

plan.py          the way in: a fleet and a model go in, a plan comes out
bias.py          what is minimised, and why
blocks.py        what is trained or frozen as a whole
device.py        what a device may spend
tolls.py         what sets of blocks cost: gradients pass through everything above
pool.py, kinds.py, problem.py
                 which sets a device may train; devices that choose alike; the whole question in numbers
relaxation.py    a linear program below every plan: the lower bound, and the exact program
solver.py        HiGHS, the only place that imports scipy
cover.py         every block is trained by somebody
exact.py, enumeration.py       the best plan of a small fleet
approximate.py, search.py      a good plan of any fleet
sca.py, at_random.py, sequential.py   the paper's method and its baselines
found.py         a plan and what is known about it
"""

from edgefl.planning.freezing.blocks import Block, freezing_blocks
from edgefl.planning.freezing.device import FreezingDevice
from edgefl.planning.freezing.plan import FreezingPart, FreezingPlan, PlanningMethod, freezing_plan

__all__ = [
    "Block",
    "FreezingDevice",
    "FreezingPart",
    "FreezingPlan",
    "PlanningMethod",
    "freezing_blocks",
    "freezing_plan",
]
