"""Local rules: what happens on a device around a `TrainStep`, one paper or method per file. numpy only.

rule.py                 the interface: a rule's inputs, its state, its update
sent_tensors.py         what the update of a rule holds
registry.py             rules by name, and from a plan's settings to a rule
descent.py              a step of gradient descent, and the base class of rules
sgd.py                  gradient descent: FedAvg, FedProx, PerFedMask
fine_tune.py            gradient descent for the device alone
local_training.py       gradient descent on the device's own model, from round to round
ditto.py                Ditto: a model of the device's own beside the global one
base_networks.py        Split-Mix: every step trains several small networks side by side
shared_layers.py        LG-FedAvg: layers of the device's own, and shared ones
maml.py                 Per-FedAvg: a model that a step on the device's data makes good
channel_pruning.py      Hermes: a device loses channels from round to round
group_lasso.py          the penalty of Hermes
channel_removal.py      removes the least valuable channels
submodel_channels.py    where the channels lie in a submodel
sensitivity.py          how much a device's loss depends on each channel: reported, and pruned by
prune_regrow.py         FedSpa: a device exchanges weights or channels for others
weight_pruning.py       Sub-FedAvg: a device gives up weights from round to round
erk.py                  FedSpa's first masks
probabilistic_masks.py  FedMAP: a device learns the probability that an entry is worth having
mask_generation.py      draws masks that fit a device, and learns their probabilities
maskable_weights.py     masks over single weights
maskable_channels.py    masks over channels
masked_noise.py         FedMRN: one bit per weight
pruned_noise.py         Hermes with FedMRN's uplink
magnitude_pruning.py    FedSparsify: the smallest weights are pruned after training
compressed_sgd.py       gradient descent whose update is compressed at the end
compression/            the compressors: signs, TernGrad, Top-k, DRIVE, EDEN, random subsampling
sampled_masks.py        FedPM: random weights, and one bit for each that says whether it is kept
ordered_dropout.py      FjORD: every step trains the leading channels of another width
feature_sums.py         sums of what the head reads, for a head that is solved exactly
head_gradients.py       the sum of the head's gradients, at a head that all devices share
class_prior.py          a personal head without training: the device's shares of the classes
summation.py            sums in a fixed order, the same on every platform
ranking.py              the lowest or highest entries of an array
upload_bound.py         the most bytes that an update can have
"""

from edgefl.local_rules.base_networks import BaseNetworks, arrays_cost, mean_logits
from edgefl.local_rules.channel_pruning import ChannelPruning
from edgefl.local_rules.class_prior import SHARES, ClassPrior
from edgefl.local_rules.compressed_sgd import CompressedSgd
from edgefl.local_rules.descent import Descent
from edgefl.local_rules.ditto import DittoRule
from edgefl.local_rules.feature_sums import FeatureSums, head_of
from edgefl.local_rules.fine_tune import FineTune
from edgefl.local_rules.head_gradients import HeadGradients
from edgefl.local_rules.local_training import LocalTraining
from edgefl.local_rules.magnitude_pruning import MagnitudePruning
from edgefl.local_rules.maml import Maml
from edgefl.local_rules.masked_noise import MaskedNoise, noise_of, rebuild
from edgefl.local_rules.ordered_dropout import OrderedDropout
from edgefl.local_rules.probabilistic_masks import ProbabilisticMasks
from edgefl.local_rules.prune_regrow import ChannelRegrow, PruneRegrow
from edgefl.local_rules.pruned_noise import PrunedNoise
from edgefl.local_rules.registry import (
    RULES,
    changes_model,
    changes_widths,
    continues_own,
    networks_of,
    networks_within,
    only_forward,
    rule_names,
    rule_needs,
    rule_of,
)
from edgefl.local_rules.rule import (
    Batch,
    LocalRule,
    State,
    StepResult,
    TrainingInput,
    TrainStep,
    Update,
    trained_parameters,
)
from edgefl.local_rules.sampled_masks import SampledMasks
from edgefl.local_rules.sgd import Sgd
from edgefl.local_rules.shared_layers import SharedLayers
from edgefl.local_rules.upload_bound import most_upload_bytes
from edgefl.local_rules.weight_pruning import WeightPruning

__all__ = [
    # the interface
    "Batch",
    "LocalRule",
    "TrainingInput",
    "State",
    "StepResult",
    "TrainStep",
    "Update",
    "trained_parameters",
    # the rules
    "RULES",
    "changes_model",
    "changes_widths",
    "arrays_cost",
    "mean_logits",
    "networks_of",
    "networks_within",
    "only_forward",
    "continues_own",
    "rule_names",
    "rule_needs",
    "rule_of",
    "Descent",
    "Sgd",
    "FineTune",
    "LocalTraining",
    "DittoRule",
    "SharedLayers",
    "Maml",
    "WeightPruning",
    "ChannelPruning",
    "PruneRegrow",
    "ChannelRegrow",
    "ProbabilisticMasks",
    "MaskedNoise",
    "PrunedNoise",
    "CompressedSgd",
    "SampledMasks",
    "OrderedDropout",
    "BaseNetworks",
    "MagnitudePruning",
    "FeatureSums",
    "HeadGradients",
    "ClassPrior",
    "SHARES",
    "head_of",
    # the coordinator's side
    "most_upload_bytes",
    "noise_of",
    "rebuild",
]
