"""Every local rule by name, and how a plan's settings become a rule.

The device's trainer calls `rule_of`; strategies call it too, to refuse a bad plan before it is sent.
`edgefl.values.settings` turns settings into the fields of a rule.
"""

from collections.abc import Mapping

from edgefl.local_rules.base_networks import BaseNetworks, base_networks
from edgefl.local_rules.channel_pruning import ChannelPruning
from edgefl.local_rules.class_prior import ClassPrior
from edgefl.local_rules.compressed_sgd import CompressedSgd
from edgefl.local_rules.ditto import DittoRule
from edgefl.local_rules.feature_sums import FeatureSums, ForwardRule
from edgefl.local_rules.fine_tune import FineTune
from edgefl.local_rules.head_gradients import HeadGradients
from edgefl.local_rules.local_training import LocalTraining
from edgefl.local_rules.magnitude_pruning import MagnitudePruning
from edgefl.local_rules.maml import Maml
from edgefl.local_rules.masked_noise import MaskedNoise
from edgefl.local_rules.ordered_dropout import OrderedDropout
from edgefl.local_rules.probabilistic_masks import ProbabilisticMasks
from edgefl.local_rules.prune_regrow import ChannelRegrow, PruneRegrow
from edgefl.local_rules.pruned_noise import PrunedNoise
from edgefl.local_rules.rule import LocalRule
from edgefl.local_rules.sampled_masks import SampledMasks
from edgefl.local_rules.sgd import Sgd
from edgefl.local_rules.shared_layers import SharedLayers
from edgefl.local_rules.submodel_channels import narrow
from edgefl.local_rules.weight_pruning import WeightPruning
from edgefl.masks import Mask, Weights
from edgefl.values import RuleSettings, added_settings, chosen

__all__ = [
    "RULES",
    "changes_model",
    "changes_widths",
    "continues_own",
    "networks_of",
    "networks_within",
    "only_forward",
    "rule_names",
    "rule_needs",
    "rule_of",
]

_RULES: tuple[type[LocalRule], ...] = (
    Sgd,
    FineTune,
    ChannelPruning,
    PruneRegrow,
    ChannelRegrow,
    ProbabilisticMasks,
    MaskedNoise,
    PrunedNoise,
    CompressedSgd,
    SampledMasks,
    OrderedDropout,
    BaseNetworks,
    MagnitudePruning,
    LocalTraining,
    DittoRule,
    SharedLayers,
    Maml,
    WeightPruning,
    FeatureSums,
    HeadGradients,
    ClassPrior,
)
RULES: Mapping[str, type[LocalRule]] = {rule.name: rule for rule in _RULES}
"""The rules that a plan may name."""
_CHANGE_WIDTHS = frozenset(
    rule.name for rule in (ChannelPruning, ChannelRegrow, ProbabilisticMasks, PrunedNoise, OrderedDropout, BaseNetworks)
)
_LEAVE_MODEL = frozenset({ProbabilisticMasks.name, FeatureSums.name, HeadGradients.name})
_CONTINUE_OWN = frozenset(rule.name for rule in (LocalTraining, DittoRule, SharedLayers))


def rule_of(settings: RuleSettings) -> LocalRule:
    """Return the rule that a plan names; a `SchemaError` says what is wrong with its name or settings."""
    return chosen("local rule", RULES, settings.name, settings.settings)


def rule_names() -> tuple[str, ...]:
    """Return what a client names that has every rule: the rules, and `RULE.SETTING` for settings that were added."""
    return (*RULES, *(f"{name}.{setting}" for name, rule in RULES.items() for setting in added_settings(rule)))


def rule_needs(settings: RuleSettings) -> tuple[str, ...]:
    """Return which names of rules and added settings a client must have to train by these settings, the rule first.

    A setting that a plan does not name is not needed: clients from before it train as they always did.
    """
    rule = RULES.get(settings.name)
    added = () if rule is None else added_settings(rule)
    return (settings.name, *(f"{settings.name}.{name}" for name in added if name in settings.settings))


def changes_model(settings: RuleSettings) -> bool:
    """Return whether a device has a new model after a task by this rule.

    In FedMAP's mask phase it does not: it gets the whole model to learn which entries are worth having, and the model
    that it predicts with stays the same. Nor if it only sums up what the model makes of its samples.
    """
    return settings.name not in _LEAVE_MODEL


def continues_own(settings: RuleSettings) -> bool:
    """Return whether a rule starts from the device's own model of before the task (`TrainingInput.own`)."""
    return settings.name in _CONTINUE_OWN


def only_forward(rule: LocalRule) -> bool:
    """Return whether a rule only runs the model forward: its graph returns features, and every sample counts once."""
    return isinstance(rule, ForwardRule)


def changes_widths(name: str) -> bool:
    """Return whether a rule runs steps at other widths than the plan's, which a compiled program cannot."""
    return name in _CHANGE_WIDTHS


def networks_of(rule: LocalRule, mask: Mask) -> tuple[Mask, ...]:
    """Return the networks of a submodel, whose logits are averaged: one, unless the rule trains several."""
    return base_networks(mask, rule.networks) if isinstance(rule, BaseNetworks) else (mask,)


def networks_within(rule: LocalRule, mask: Mask, weights: Weights) -> list[Weights]:
    """Return the weights of the networks of a submodel, whose own weights are given."""
    networks = networks_of(rule, mask)
    return [weights] if networks == (mask,) else [narrow(mask, network, weights) for network in networks]
