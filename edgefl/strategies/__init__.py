"""Strategies: what a paper or a baseline is, seen from the coordinator. numpy only, no input or output.

strategy.py          the seam: what a strategy is given, what it asks of devices, what it makes of their answers
registry.py          strategies by name, and from a federation's settings to a strategy
outside.py           strategies from elsewhere, as package.module:Class
asking.py            which devices are asked
chance.py            what is drawn from the seed, and in which order devices are asked
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

from edgefl.strategies.asking import orders_for
from edgefl.strategies.averages import Average, Averaging, Weighing
from edgefl.strategies.averaging import Overlap, RunningMean
from edgefl.strategies.compressed import (
    DriveAverage,
    EdenAverage,
    RandomSubsampling,
    Signsgd,
    TerngradAverage,
    TopkAverage,
)
from edgefl.strategies.ditto import Ditto
from edgefl.strategies.fedavg import Fedavg
from edgefl.strategies.fedbabu import Fedbabu
from edgefl.strategies.fedmap import Fedmap
from edgefl.strategies.fedmrn import Fedmrn
from edgefl.strategies.fednova import Fednova
from edgefl.strategies.fedpm import Fedpm, Posterior, ServedMask
from edgefl.strategies.fedprox import Fedprox
from edgefl.strategies.fedrolex import Fedrolex
from edgefl.strategies.fedspa import Fedspa, FirstMasks
from edgefl.strategies.fjord import Fjord
from edgefl.strategies.freezing import Frozen
from edgefl.strategies.hermes import Aggregation, Hermes
from edgefl.strategies.heterofl import Heterofl
from edgefl.strategies.local import Local
from edgefl.strategies.outside import is_outside
from edgefl.strategies.perfedmask import Perfedmask
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
from edgefl.strategies.uplinks import Sent
from edgefl.strategies.uploads import part_norm
from edgefl.strategies.widths import Placement, Width

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
    "is_outside",
    "Fedavg",
    "Fedmrn",
    "Fedpm",
    "Posterior",
    "ServedMask",
    "Signsgd",
    "TopkAverage",
    "TerngradAverage",
    "DriveAverage",
    "EdenAverage",
    "RandomSubsampling",
    "Sent",
    "Fedprox",
    "Fednova",
    "Heterofl",
    "Fedrolex",
    "Fjord",
    "Perfedmask",
    "Fedbabu",
    "Hermes",
    "Aggregation",
    "Fedspa",
    "FirstMasks",
    "Fedmap",
    "Local",
    "Ditto",
    "Width",
    "Placement",
    "Frozen",
    # what they share
    "Average",
    "Averaging",
    "Weighing",
    "Overlap",
    "RunningMean",
    "check_personal",
    "orders_for",
    "part_norm",
]
