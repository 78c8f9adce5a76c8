"""Strategies: what a paper or a baseline is, seen from the coordinator. numpy only, no input or output.

strategy.py          the seam: what a strategy is given, what it asks of devices, what it makes of their answers
registry.py          strategies by name, and from a federation's settings to a strategy
averaged.py          what strategies share that average parts
fedavg.py            federated averaging
uplink.py, uplinks.py
                     what travels up: the seam, and the choice
widths.py            which channels
personalising.py     what devices do with the last model
local_round.py       what a round will take on a device, and which part fits
uploads.py           what came back: checks, norms, arrays
averages.py          which average
averaging.py         running sums over masks: by holders, by participants
order_statistics.py  medians and trimmed means, block by block
"""

from edgefl.strategies.averages import Average, Averaging, Weighing
from edgefl.strategies.averaging import Overlap, RunningMean
from edgefl.strategies.fedavg import Fedavg
from edgefl.strategies.personalising import check_personal
from edgefl.strategies.registry import STRATEGIES, strategy_of
from edgefl.strategies.strategy import (
    Contribution,
    Contributions,
    Model,
    Moment,
    Order,
    Participant,
    Strategy,
)
from edgefl.strategies.uploads import part_norm
from edgefl.strategies.widths import Width

__all__ = [
    # the seam
    "Strategy",
    "Model",
    "Moment",
    "Participant",
    "Order",
    "Contribution",
    "Contributions",
    # the strategies
    "STRATEGIES",
    "strategy_of",
    "Fedavg",
    "Width",
    # what they share
    "Average",
    "Averaging",
    "Weighing",
    "Overlap",
    "RunningMean",
    "check_personal",
    "part_norm",
]
