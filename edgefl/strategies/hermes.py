"""Strategy `hermes`: every device loses channels from round to round and ends with a small model of its own.

Li et al., "Hermes: An Efficient Federated Learning Framework for Heterogeneous Mobile Clients", MobiCom 2021, Algorithm
1. A device starts from the whole model, or from the widest submodel that it can train in time, and loses channels
whenever it is accurate enough, down to a share of the parameters. The coordinator keeps its mask, which only shrinks.
What several devices have is averaged, and what only one has is its own (section 3.3).

`prune_by` says who decides which channels go:
- "sensitivity", the default: the coordinator, after an update, by what the device reported with it: how much its loss
  depended on each channel while it trained (`edgefl.local_rules.sensitivity`). Devices with different data lose
  different channels, the next download is already smaller, and a client needs no code to prune: the rule is `sgd`, or
  `masked_noise`. The accuracy that counts is the reported one, of the device's model after training. There is no
  penalty: it makes room by magnitude, which nobody looks at here. Nothing is pruned after the last round.
- "magnitude", the paper's letter: the device, before it trains, by the magnitude of the downloaded weights, if these
  are accurate enough, with a penalty on groups of weights (rule `channel_pruning`). The downloaded weights are those
  of the shared model, so devices with different data lose nearly the same channels.

The coordinator keeps one model W, and a device's model is its mask of it (Algorithm 1, line 8). So, coordinate by
coordinate:
- one device has it: no other device ever writes it. It is as personal as in the paper.
- all participants have it: their mean, as in the paper.
- some have it: the paper averages "intersected" parameters and shows two devices (Figure 5). By default it is averaged
  over those that have it. With `aggregation` "intersection" only what all participants have is averaged; a participant
  that alone has a coordinate still writes it; and if several but not all have it, W keeps its value, because it cannot
  keep a value for each of them. So nothing is mixed that the paper would not mix, and what was trained there is lost.
  With many devices and few common channels, that is most of the training.

A device that skips a round finds, when it takes part again, what the others made of the shared channels.

The paper's rounds are 5 epochs in batches of 16; the federation sets both. lambda of the penalty and the learning rate
are not given: they are settings, and every device reports what it used. A device that can only train less than the
target is never pruned. A pruned submodel that becomes too large for its device's budget, because there is more data
than before, loses more: the channels of the lowest magnitude go. Frozen layers (`freezing`) lose their channels with
the others; by sensitivity, a group of channels that has no trained tensor keeps all of them.

Until a device is pruned for the first time, every round gives it the widest submodel that it can train: a wider one if
it has fewer samples than before, its rounds turned out faster than predicted, or a program of a wider rung was
compiled. What pruning removed does not come back, unless that was just the last channels of every group: what remains
then cannot be told from a first submodel.

A device whose engine runs compiled programs is pruned to the next rung: the largest one of at most the parameters that
pruning would have left. It ends on the rung whose size is nearest to the target, above or below it. It is not pruned in
a round in which it could not evaluate its model.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import ClassVar

import numpy as np

from edgefl.local_rules import ChannelPruning, PrunedNoise
from edgefl.local_rules.channel_pruning import PruningScope
from edgefl.masks import Mask, Weights, holders
from edgefl.model_graph import ModelGraph
from edgefl.strategies.averaging_strategy import FineTunedStrategy
from edgefl.strategies.freezing import Freezing, FrozenLayers, body_of
from edgefl.strategies.largest_channels import largest_fraction, largest_trainable
from edgefl.strategies.new_mask_uplinks import PrunedUplink, trained_submodel
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.running_mean import Overlap
from edgefl.strategies.sensitivity_uplink import SensitivityUplink, pruned_by_report
from edgefl.strategies.strategy import ClientUpdate, ClientUpdates, Model, Participant, RoundContext
from edgefl.strategies.uplink import Uplink, ValuesUplink
from edgefl.strategies.uplink_choice import UplinkChoice, UplinkKind
from edgefl.values import FieldError, Fraction, PositiveCount, Ratio

__all__ = ["HermesAggregation", "Hermes", "PruningCriterion"]


class HermesAggregation(StrEnum):
    """Where the parameters of several devices are averaged."""

    HOLDERS = "holders"
    """Wherever any device has them: the mean of those that do."""
    INTERSECTION = "intersection"
    """Only where all participants have them."""


class PruningCriterion(StrEnum):
    """By what channels are pruned, and so by whom."""

    SENSITIVITY = "sensitivity"
    """By the coordinator, after training, from what devices report of their own data."""
    MAGNITUDE = "magnitude"
    """By the device, before training, from the downloaded weights: the paper's letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hermes(FineTunedStrategy):
    """Personal submodels by structured pruning; the defaults are the paper's, except those that it does not give."""

    name: ClassVar[str] = "hermes"
    accuracy_threshold: Fraction = 0.5
    """A device is pruned when its accuracy on its validation data is above this."""
    kept_target: Fraction = 0.3
    """r_target: the share of the model's parameters at which pruning ends."""
    prune_rate: Fraction = 0.2
    """r_p: the share of the remaining channels that is removed in one round."""
    prune_by: PruningCriterion = PruningCriterion.SENSITIVITY
    lasso: Ratio = 1e-4
    """lambda of the structured sparsity penalty; only with `prune_by` "magnitude"."""
    prune_scope: PruningScope = PruningScope.GROUP
    """Where the lowest channels are searched for."""
    channel_multiple: PositiveCount = 4
    """Layers of at least four times this many channels keep a multiple of it: the rest is then really faster."""
    aggregation: HermesAggregation = HermesAggregation.HOLDERS
    freezing: Freezing = field(default_factory=Freezing)
    uplinks: UplinkChoice = field(default_factory=UplinkChoice)

    def check_settings(self) -> None:
        """Refuse uplinks that cannot send a pruned submodel, and an overlap that contradicts the aggregation."""
        if self.uplinks.sent not in (UplinkKind.VALUES, UplinkKind.MASKED_NOISE):
            raise FieldError(
                f"is {self.uplinks.sent.value!r}, whose rule neither prunes nor reports what to prune by",
                fix="Write sent = 'values' or 'masked_noise', or choose another strategy",
                path=("sent",),
            )
        if self.aggregation is HermesAggregation.INTERSECTION and self.averaging.overlap is Overlap.PARTICIPANTS:
            raise FieldError(
                "is 'participants', but with aggregation = 'intersection' what one device has alone is its own",
                fix="Leave it out, or write aggregation = 'holders'",
                path=("overlap",),
            )

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Start from the weights as they are; refuse to freeze the head of a model that is all head."""
        if self.freezing.frozen is not FrozenLayers.NONE:
            body_of(graph)
        return FineTunedStrategy.begin(self, graph, weights)

    @property
    def uplink(self) -> Uplink:
        """New values or FedMRN's bits of the remaining channels."""
        if self.prune_by is PruningCriterion.MAGNITUDE:
            return self._pruned_uplink()
        if self.uplinks.sent is UplinkKind.VALUES:
            return SensitivityUplink(ValuesUplink.by_descent(self.descent, sensitivity=True))
        return SensitivityUplink(self.uplinks.noise.build(self.descent, sensitivity=True))

    def next_mask(self, update: ClientUpdate) -> Mask | None:
        """Return what is left of a device's submodel; None if it keeps what it was given."""
        if self.prune_by is PruningCriterion.MAGNITUDE:
            return update.next_mask
        return pruned_by_report(self._pruning, update)

    @property
    def _pruning(self) -> ChannelPruning:
        """When channels go, and how many: the same wherever that is decided."""
        return ChannelPruning(
            descent=self.descent,
            accuracy_threshold=self.accuracy_threshold,
            target=self.kept_target,
            rate=self.prune_rate,
            lasso=self.lasso,
            scope=self.prune_scope,
            multiple=self.channel_multiple,
        )

    def _pruned_uplink(self) -> PrunedUplink:
        pruning, inner = self._pruning, self.uplinks.build(self.descent)
        if self.uplinks.sent is UplinkKind.VALUES:
            return PrunedUplink(pruning, inner)
        return PrunedUplink(PrunedNoise.of(pruning, self.uplinks.noise.build(self.descent).local), inner)

    def submodels(
        self, model: Model, estimates: Mapping[str, RoundEstimate], round_context: RoundContext
    ) -> Mapping[str, Mask]:
        """Give every device its remaining submodel; at first as much as it can train in time."""
        return self.freezing.submodels(_OwnChannels(model.weights), estimates, round_context).masks

    def combine(self, model: Model, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Average the new values, everywhere or only where all participants have them."""
        averaged = FineTunedStrategy.combine(self, model, updates, round_context)
        if self.aggregation is HermesAggregation.HOLDERS:
            return averaged
        return replace(averaged, weights=_undisputed(model, averaged.weights, updates))

    def explain(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, float]:
        """Return the figures of the freezing planner; empty if nothing is planned."""
        estimates = self._estimates(model, participants, round_context)
        return self.freezing.submodels(_OwnChannels(model.weights), estimates, round_context).figures

    def extract(self, model: Model, fraction: float, seed: int) -> Mask:
        """Return the channels of the largest magnitude."""
        return largest_fraction(model, fraction)


@dataclass(frozen=True, slots=True, eq=False)
class _OwnChannels:
    """What remains of each device's submodel, or its first one."""

    weights: Weights

    def masks(
        self,
        estimates: Mapping[str, RoundEstimate],
        round_context: RoundContext,
        trained: Collection[str] | None = None,
    ) -> dict[str, Mask]:
        """Return the channels of each device, with these layers trained; a device that none fit is left out."""
        found = {device: self._of(estimate, trained) for device, estimate in estimates.items()}
        return {device: mask for device, mask in found.items() if mask is not None}

    def _of(self, estimate: RoundEstimate, trained: Collection[str] | None) -> Mask | None:
        own = estimate.participant.mask
        if own is None or _is_first(own):
            return estimate.widest(trained)
        return largest_trainable(Mask.of(own.graph, trained=trained, kept=own.kept), self.weights, estimate)


def _is_first(mask: Mask) -> bool:
    """Return whether a mask has leading channels only, as first masks do: nothing was pruned yet."""
    return all(kept[-1] + 1 == kept.size for kept in mask.kept.values())


def _undisputed(model: Model, averaged: Weights, updates: ClientUpdates) -> Weights:
    """Return the averaged weights, with the model's where several but not all participants trained them."""
    masks = [trained_submodel(update).mask for update in updates if update.result.samples and update.trust]
    if not masks:
        return averaged
    weights = dict(averaged)
    for name, counts in holders(masks, trained_only=True).items():
        disputed = (counts > 1) & (counts < len(masks))
        if disputed.any():
            weights[name] = np.where(disputed, model.weights[name], averaged[name])
            weights[name].flags.writeable = False
    return weights
