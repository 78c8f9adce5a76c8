"""Strategies: what a paper or a baseline is, seen from the coordinator. numpy only, no input or output.

strategy.py          the seam: what a strategy is given, what it asks of devices, what it makes of their answers
registry.py          strategies by name, and from a federation's settings to a strategy
outside.py           strategies from elsewhere, as package.module:Class
averaged.py          what strategies share that average parts
fedavg.py            federated averaging
fedprox.py           FedProx: with a proximal term
fednova.py           FedNova: changes are divided by how far their training could go
heterofl.py          HeteroFL: parts of leading channels in a few widths
fedrolex.py          FedRolex: parts whose channels roll through the model
fjord.py             FjORD: parts of which every step trains a random width
perfedmask.py        PerFedMask: every device trains the layers that it can afford
fedbabu.py           FedBABU: everything but the head
hermes.py            Hermes: devices lose channels and end with small models of their own
    pruned_uplink.py what they send
fedspa.py            FedSpa: sparse masks of constant size that devices exchange part of
    sparse_starts.py, difference_uplink.py
                     their first masks, and what they send
fedmap.py            FedMAP: a probabilistic mask that yields submodels of any size
    mask_posterior.py, capacities.py
                     what is believed about the mask, and how much of it a device can have
fedmrn.py            FedMRN: masked random noise, one bit a weight
compressed.py        signSGD, Top-k, TernGrad, DRIVE, EDEN, random subsampling: compressed updates
fedpm.py             FedPM: random weights, and a learned mask of them
    sampled_mask_uplink.py
                     what devices send of it
local.py             every device alone
ditto.py             Ditto: federated averaging, and a model of every device's own
largest_channels.py  the channels of the largest magnitude that fit
uplink.py, uplinks.py
                     what travels up: the seam, and the choice
    masked_noise_uplink.py, compressed_uplink.py
                     what it chooses between
widths.py            which channels
freezing.py          which layers
composed.py          what strategies share whose parts are channels and layers by settings
personalising.py     what devices do with the last model
local_round.py       what a round will take on a device, and which part fits
uploads.py           what came back: checks, norms, arrays
averages.py          which average
averaging.py         running sums over masks: by holders, by participants
order_statistics.py  medians and trimmed means, block by block
"""

from edgefl.strategies.aggregation import AggregationMethod, AggregationSettings, UpdateWeighting
from edgefl.strategies.averaging_strategy import AveragingStrategy, FineTunedStrategy
from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.strategies.compression_baselines import (
    DriveAverage,
    EdenAverage,
    RandomSubsampling,
    SignSGD,
    TernGradAverage,
    TopKAverage,
)
from edgefl.strategies.ditto import Ditto
from edgefl.strategies.fedavg import FedAvg
from edgefl.strategies.fedbabu import FedBABU
from edgefl.strategies.fedmap import FedMAP
from edgefl.strategies.fedmrn import FedMRN
from edgefl.strategies.fednova import FedNova
from edgefl.strategies.fedpm import FedPM, Posterior, ServedMask
from edgefl.strategies.fedprox import FedProx
from edgefl.strategies.fedrolex import FedRolex
from edgefl.strategies.fedspa import FedSpa, FirstMasks
from edgefl.strategies.fjord import FjORD
from edgefl.strategies.freezing import Frozen
from edgefl.strategies.hermes import Aggregation, Hermes
from edgefl.strategies.heterofl import HeteroFL
from edgefl.strategies.local_only import LocalOnly
from edgefl.strategies.perfedmask import PerFedMask
from edgefl.strategies.personalisation import check_personal
from edgefl.strategies.registry import STRATEGIES, strategy_of
from edgefl.strategies.running_mean import Overlap, RunningMean
from edgefl.strategies.strategy import (
    ClientUpdate,
    ClientUpdates,
    Model,
    Participant,
    PlannedTask,
    RoundContext,
    Strategy,
)
from edgefl.strategies.update_checks import part_norm
from edgefl.strategies.uplinks import Sent
from edgefl.strategies.user_strategies import is_user_strategy
from edgefl.strategies.widths import Placement, Width

__all__ = [
    # the seam
    "Strategy",
    "Model",
    "RoundContext",
    "Participant",
    "PlannedTask",
    "ClientUpdate",
    "ClientUpdates",
    # the strategies
    "STRATEGIES",
    "strategy_of",
    "is_user_strategy",
    "FedAvg",
    "FedMRN",
    "FedPM",
    "Posterior",
    "ServedMask",
    "SignSGD",
    "TopKAverage",
    "TernGradAverage",
    "DriveAverage",
    "EdenAverage",
    "RandomSubsampling",
    "Sent",
    "FedProx",
    "FedNova",
    "HeteroFL",
    "FedRolex",
    "FjORD",
    "PerFedMask",
    "FedBABU",
    "Hermes",
    "Aggregation",
    "FedSpa",
    "FirstMasks",
    "FedMAP",
    "LocalOnly",
    "Ditto",
    "Width",
    "Placement",
    "Frozen",
    # what they share
    "AveragingStrategy",
    "FineTunedStrategy",
    "ComposableStrategy",
    "AggregationMethod",
    "AggregationSettings",
    "UpdateWeighting",
    "Overlap",
    "RunningMean",
    "check_personal",
    "part_norm",
]
