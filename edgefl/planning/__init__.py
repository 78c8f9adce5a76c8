"""Planning: from what a device can do to what it should do.

plausible.py       refuses profiles that cannot be, with the reason
profile_bounds.py  bounds on what a plan believes of a profile
cost_model.py      predicts what training a submodel takes on a device
training_load.py   how often a rule runs the engine, and how many copies of the weights it holds
correction.py      what slow, hot and refused rounds teach about a device
budgets.py         what a device may spend on a round
uniform_width.py   the widest uniform submodel that fits
rungs.py           the ladder of ExecuTorch programs: widths, cuts and batch sizes
program_rungs.py   the rungs of one device: which submodels its engine has training programs for
freezing/          which layers each device of a fleet trains
"""

from edgefl.planning.budgets import budget_of
from edgefl.planning.correction import Correction, corrected, faded, refused
from edgefl.planning.cost_model import predict
from edgefl.planning.freezing import (
    Block,
    FreezingAssignment,
    FreezingDevice,
    FreezingPlan,
    PlanningMethod,
    freezing_blocks,
    freezing_plan,
)
from edgefl.planning.plausible import check_plausible
from edgefl.planning.profile_bounds import bounded
from edgefl.planning.program_rungs import Rung, Rungs
from edgefl.planning.rungs import DEFAULT_WIDTHS, Ladder, covering_cut, cuts_of, rung_widths
from edgefl.planning.training_load import TrainingLoad
from edgefl.planning.uniform_width import narrowest_widths, widest

__all__ = [
    "bounded",
    "check_plausible",
    "TrainingLoad",
    "predict",
    "narrowest_widths",
    "widest",
    "Correction",
    "corrected",
    "faded",
    "refused",
    "budget_of",
    "freezing_plan",
    "FreezingPlan",
    "FreezingAssignment",
    "FreezingDevice",
    "PlanningMethod",
    "Block",
    "freezing_blocks",
    "DEFAULT_WIDTHS",
    "Ladder",
    "Rung",
    "Rungs",
    "covering_cut",
    "cuts_of",
    "rung_widths",
]
