"""Local rules: what happens on a device around a `TrainStep`, one paper or method a file. numpy only.

rule.py             the seam: what a rule is given, what it keeps, what it returns
settings.py         rules by name, and from a plan's settings to a rule
descent.py          the maths of a step that rules share
sgd.py              gradient descent: FedAvg, FedProx, PerFedMask
fine_tune.py        the same, for the device alone
local_training.py   the same, and the device goes on with its own model
ditto.py            Ditto: a model of its own beside the global one
channel_pruning.py  Hermes: a device loses channels from round to round
    group_lasso.py, shedding.py, submodel_channels.py
                    its penalty, its choice of channels, and where channels lie in a submodel
prune_regrow.py     FedSpa: a device exchanges held weights for others
    erk.py          its first masks
channel_regrow.py   the same with whole channels
probabilistic_masks.py
                    FedMAP: a device learns with which probability an entry is worth having
    mask_generation.py, maskable_weights.py, maskable_channels.py
                    draws that fit a device, and what an entry is
masked_noise.py     FedMRN: one bit a weight
pruned_noise.py     Hermes and FedMRN: channels go, and what is left is sent as bits
compressed_sgd.py   gradient descent whose update is compressed at the end
    compression/    the compressors: signs, TernGrad, Top-k, DRIVE, EDEN, random subsampling
sampled_masks.py    FedPM: random weights, and one bit for each whether it is kept
ordered_dropout.py  FjORD: every step trains the leading channels of another width
selection.py        the lowest or highest entries, exactly so many
"""

from edgefl.local_rules.channel_pruning import ChannelPruning
from edgefl.local_rules.channel_regrow import ChannelRegrow
from edgefl.local_rules.compressed_sgd import CompressedSgd
from edgefl.local_rules.descent import Descent
from edgefl.local_rules.ditto import DittoRule
from edgefl.local_rules.fine_tune import FineTune
from edgefl.local_rules.local_training import LocalTraining
from edgefl.local_rules.masked_noise import MaskedNoise, noise_of, rebuild
from edgefl.local_rules.ordered_dropout import OrderedDropout
from edgefl.local_rules.probabilistic_masks import ProbabilisticMasks
from edgefl.local_rules.prune_regrow import PruneRegrow
from edgefl.local_rules.pruned_noise import PrunedNoise
from edgefl.local_rules.registry import RULES, changes_model, rule_of, settings_of
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

__all__ = [
    # the seam
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
    "rule_of",
    "settings_of",
    "Descent",
    "Sgd",
    "FineTune",
    "LocalTraining",
    "DittoRule",
    "ChannelPruning",
    "PruneRegrow",
    "ChannelRegrow",
    "ProbabilisticMasks",
    "MaskedNoise",
    "PrunedNoise",
    "CompressedSgd",
    "SampledMasks",
    "OrderedDropout",
    # the coordinator's side
    "noise_of",
    "rebuild",
]
