"""Strategies: the methods of federated learning, as the coordinator runs them. numpy only, no input or output.

strategy.py               the interface: what a strategy gets, plans and aggregates
registry.py               strategies by name, and from a federation's settings to a strategy
user_strategies.py        strategies of users, named `package.module:Class`
averaging_strategy.py     base class of strategies that average submodels
composable_strategy.py    base class of strategies whose channels, layers and uplink are settings
fedavg.py                 FedAvg: federated averaging
fedprox.py                FedProx: averaging with a proximal term
fednova.py                FedNova: averaging of normalised changes
heterofl.py               HeteroFL: submodels of leading channels in a few widths
fedrolex.py               FedRolex: submodels whose channels roll through the model
fjord.py                  FjORD: every step trains a random width
split_mix.py              Split-Mix: small networks side by side, as many as a device can afford
joined.py                 networks side by side, one for each group of devices, under one exact head
perfedmask.py             PerFedMask: every device trains the layers that it can afford
fedbabu.py                FedBABU: averaging of everything but the head
hermes.py                 Hermes: devices lose channels and end with small models of their own
fedspa.py                 FedSpa: sparse masks of constant size, part of which devices exchange
initial_masks.py          FedSpa's first masks
sub_fedavg.py             Sub-FedAvg: devices prune weights and end with sparse models of their own
fedmap.py                 FedMAP: a probabilistic mask that yields submodels of any size
mask_posterior.py         FedMAP's Beta distributions over the entries of the mask
capacities.py             FedMAP's capacities: the largest submodel that fits a device
fedsparsify.py            FedSparsify: the model becomes sparser from round to round
fedmrn.py                 FedMRN: masked random noise, one bit per weight
fedpm.py                  FedPM: random weights, and a learned mask of them
compression_baselines.py  signSGD, Top-k, TernGrad, DRIVE, EDEN, random subsampling: compressed updates
local_only.py             every device alone
ditto.py                  Ditto: federated averaging, and a model of every device's own
lg_fedavg.py              LG-FedAvg: averaging of some layers, under or over layers of every device's own
per_fedavg.py             Per-FedAvg: averaging of models that a little training on a device makes good
widths.py                 the setting for channels
freezing.py               the setting for layers
local_work.py             the setting for batches and steps: less of them instead of a smaller submodel
uplink_choice.py          the setting for the uplink
uplink.py                 the interface of uplinks, and the uplink of new values
one_bit_uplinks.py        the uplinks of FedMRN and FedPM
compressed_uplink.py      the uplink of compressed updates
new_mask_uplinks.py       the uplinks of Hermes, FedSpa and Sub-FedAvg: a new mask comes with the update
sensitivity_uplink.py     the uplink of Hermes: a report comes with the update, by which the coordinator prunes
exact_head.py             a phase of any strategy: the last layer is fitted to all devices' data
exact_head_settings.py    its settings, and which rounds it takes
forward_work.py           which devices can run the model forward, and over how many samples
head_sums.py              the sums that devices send for it, checked and bounded
head_fit.py               the maths of that fit, from sums
held_part.py              the part of the global model that devices hold: what is judged and exported by default
personalisation.py        fine-tuning of the last model
round_estimate.py         what a round takes on a device, and which submodel fits
largest_channels.py       the channels of the largest magnitude that fit
transfer_sizes.py         how many bytes a task downloads and uploads
update_checks.py          checks, norms and arrays of updates
aggregation.py            the setting for aggregation
sample_counts.py          how many samples an update counts for
running_mean.py           means over masks in running sums
order_statistics.py       medians and trimmed means, block by block
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
from edgefl.strategies.fedsparsify import FedSparsify, PurgeAt
from edgefl.strategies.fjord import FjORD
from edgefl.strategies.freezing import FrozenLayers
from edgefl.strategies.hermes import Hermes, HermesAggregation, PruningCriterion
from edgefl.strategies.heterofl import HeteroFL
from edgefl.strategies.joined import Joined
from edgefl.strategies.lg_fedavg import LGFedAvg
from edgefl.strategies.local_only import LocalOnly
from edgefl.strategies.per_fedavg import PerFedAvg
from edgefl.strategies.perfedmask import PerFedMask
from edgefl.strategies.personalisation import check_personal
from edgefl.strategies.registry import STRATEGIES, strategy_of
from edgefl.strategies.running_mean import Overlap, RunningMean
from edgefl.strategies.split_mix import SplitMix
from edgefl.strategies.strategy import (
    ClientUpdate,
    ClientUpdates,
    Model,
    Participant,
    PlannedTask,
    RoundContext,
    Strategy,
)
from edgefl.strategies.sub_fedavg import SubFedAvg
from edgefl.strategies.update_checks import submodel_norm
from edgefl.strategies.uplink_choice import UplinkKind
from edgefl.strategies.user_strategies import is_user_strategy
from edgefl.strategies.widths import Placement, Width

__all__ = [
    # the interface
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
    "UplinkKind",
    "FedProx",
    "FedNova",
    "HeteroFL",
    "FedRolex",
    "FjORD",
    "SplitMix",
    "PerFedMask",
    "FedBABU",
    "Hermes",
    "Joined",
    "HermesAggregation",
    "PruningCriterion",
    "FedSpa",
    "FirstMasks",
    "FedMAP",
    "FedSparsify",
    "PurgeAt",
    "LocalOnly",
    "Ditto",
    "LGFedAvg",
    "PerFedAvg",
    "SubFedAvg",
    "Width",
    "Placement",
    "FrozenLayers",
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
    "submodel_norm",
]
