"""Planning: from what a device can do to what it shall do.

prediction.py    what a submodel will take on a device
correction.py    how wrong that was, learnt from what devices report
budgets.py       what a device may spend on a round
uniform.py       the widest uniform submodel that fits
freezing/        which layers each device of a fleet trains
"""

from edgefl.planning.budgets import budget_of
from edgefl.planning.correction import Correction, corrected, faded, refused
from edgefl.planning.cost_model import predict
from edgefl.planning.freezing import (
    Block,
    FreezingDevice,
    FreezingPart,
    FreezingPlan,
    PlanningMethod,
    freezing_blocks,
    freezing_plan,
)
from edgefl.planning.uniform_width import widest

__all__ = [
    "predict",
    "widest",
    "Correction",
    "corrected",
    "faded",
    "refused",
    "budget_of",
    "freezing_plan",
    "FreezingPlan",
    "FreezingPart",
    "FreezingDevice",
    "PlanningMethod",
    "Block",
    "freezing_blocks",
]
