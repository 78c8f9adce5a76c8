"""Planning: from what a device can do to what it shall do.

prediction.py    what a submodel will take on a device
correction.py    how wrong that was, learnt from what devices report
budgets.py       what a device may spend on a round
uniform.py       the widest uniform submodel that fits
freezing/        which layers each device of a fleet trains
"""

from edgefl.planning.budgets import budget_of
from edgefl.planning.correction import Correction, corrected, faded, refused
from edgefl.planning.freezing import (
    Block,
    FreezingDevice,
    FreezingPart,
    FreezingPlan,
    Method,
    freezing_blocks,
    freezing_plan,
)
from edgefl.planning.prediction import predict
from edgefl.planning.uniform import widest

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
    "Method",
    "Block",
    "freezing_blocks",
]
