"""Strategy `fedspa`: every device has a sparse mask of constant size, and exchanges part of it every round.

"Achieving Personalized Federated Learning with Sparse Local Models" (FedSpa). A device trains the weights that its mask
holds, then gives up the smallest and takes up others (`prune_regrow`), or never changes its mask (`method` static,
RSM). The coordinator averages the decrease of the weights over all participants, whether they held them or not (Eq. 4),
and cuts the next submodel out of the dense global model, so new weights start from the values that other devices
trained. A device's final model is its mask of the global one.

What the paper leaves open or does in two ways, and what is done here:
- Eq. 4 counts every device equally and divides by all participants. Both are settings, with these defaults: `overlap`
  "holders" divides the decrease of a weight by the devices that held it, which moves it as far as FedAvg would.
- Its experiments start all devices from one mask; its appendix finds masks of their own slightly better (Figure 6).
  `first_masks` has both, their own by default. The paper's RSM is `method` static with `first_masks` same: one mask for
  all, which makes it FedAvg of a sparse model. Masks come only from `mask_seed` and the device's name: a device gets
  the same one whenever it first takes part.
- Missing weights save bytes but no time, because engines work on whole arrays. A device that cannot train the whole
  model in time gets a mask of the widest submodel that it can train, of the same density; if its submodel becomes too
  large, as it turns out to have more data, the channels of the lowest magnitude go.
- With `granularity` "channel" (ours, `channel_regrow`) masks are of whole channels, and sparse models are faster. The
  density is then the share of the parameters, every group is about equally narrow, and its first channels are random.

The paper's rounds are 5 epochs in batches of 128; the federation sets both.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from edgefl.local_rules import ChannelRegrow, Descent, PruneRegrow
from edgefl.local_rules.descent import Schedule
from edgefl.local_rules.erk import erk_counts, erk_densities
from edgefl.local_rules.probabilistic_masks import Granularity
from edgefl.local_rules.prune_regrow import RegrowMethod
from edgefl.local_rules.ranking import highest
from edgefl.masks import Mask, Weights, full_mask
from edgefl.model_graph import Cost, ModelGraph
from edgefl.noise import derive
from edgefl.strategies.aggregation import AggregationSettings, UpdateWeighting
from edgefl.strategies.averaging_strategy import FineTunedStrategy
from edgefl.strategies.initial_masks import filled_widths, random_channel_mask, random_weight_mask
from edgefl.strategies.largest_channels import largest_fraction, largest_trainable
from edgefl.strategies.new_mask_uplinks import DifferenceUplink
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.running_mean import Overlap
from edgefl.strategies.strategy import Model, Participant, PlannedTask, RoundContext
from edgefl.strategies.uplink import rule_settings
from edgefl.values import Capabilities, Count, Dimension, Fraction, Quantity

__all__ = ["FedSpa", "FirstMasks"]

Density = Annotated[float, Quantity(Dimension.SHARE, "a share above 0 and at most 1", "0.5", low=1e-9, high=1)]


class FirstMasks(StrEnum):
    """The first masks of devices."""

    OWN = "own"
    """Each with a random mask of its own."""
    SAME = "same"
    """The same random mask for all devices that can train the same submodel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FedSpa(FineTunedStrategy):
    """Personal sparse masks of constant size; the defaults are the paper's, except `first_masks`."""

    name: ClassVar[str] = "fedspa"
    descent: Descent = field(
        default_factory=lambda: Descent(
            learning_rate=0.1, weight_decay=5e-4, schedule=Schedule.EXPONENTIAL, decay_factor=0.998
        )
    )
    density: Density = 0.5
    """The share of its submodel's parameters that a device holds; with channels, of the model's."""
    granularity: Granularity = Granularity.WEIGHT
    method: RegrowMethod = RegrowMethod.DYNAMIC
    initial_rate: Fraction = 0.5
    """alpha_0: the share of its mask that a device exchanges in the first round."""
    first_masks: FirstMasks = FirstMasks.OWN
    mask_seed: Count = 0
    """The seed of the first masks."""
    averaging: AggregationSettings = field(
        default_factory=lambda: AggregationSettings(overlap=Overlap.PARTICIPANTS, weighing=UpdateWeighting.EQUAL)
    )

    @property
    def uplink(self) -> DifferenceUplink:
        """The decrease of the weights or channels of the old mask, and the new mask."""
        rule = partial(PruneRegrow, values_only=True) if self.granularity is Granularity.WEIGHT else ChannelRegrow
        return DifferenceUplink(rule(descent=self.descent, method=self.method, initial_rate=self.initial_rate))

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Start from the weights as they are, if the model can be as sparse as requested."""
        if self.granularity is Granularity.WEIGHT:
            erk_densities(full_mask(graph), self.density)
        else:
            filled_widths(graph, self._sparse_enough(graph))
        return FineTunedStrategy.begin(self, graph, weights)

    def plan(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Plan a task for every device; clients from before `values_only` also send positions."""
        planned_tasks = FineTunedStrategy.plan(self, model, participants, round_context)
        local = self.uplink.local
        if not isinstance(local, PruneRegrow):
            return planned_tasks
        able = {one.device_id for one in participants if _can_send_values_only(one.capabilities)}
        older = rule_settings(replace(local, values_only=False))
        return {
            device: planned if device in able else replace(planned, rule=older)
            for device, planned in planned_tasks.items()
        }

    def submodels(
        self, model: Model, estimates: Mapping[str, RoundEstimate], round_context: RoundContext
    ) -> Mapping[str, Mask]:
        """Give every device its current mask, or its first one."""
        found = {device: self._kept(estimate, model.weights) for device, estimate in estimates.items()}
        new = {device: estimate for device, estimate in estimates.items() if estimate.participant.mask is None}
        found |= self._initial(model.graph, new) if new else {}
        return {device: mask for device, mask in found.items() if mask is not None}

    def extract(self, model: Model, fraction: float, seed: int) -> Mask:
        """Return the weights or channels of the largest magnitude."""
        if self.granularity is Granularity.CHANNEL:
            return largest_fraction(model, fraction)
        return _largest_weights(model, fraction)

    def _kept(self, estimate: RoundEstimate, weights: Weights) -> Mask | None:
        """Return a device's current mask, or as much of it as it can train."""
        if estimate.participant.mask is None:
            return None
        density = self._density(estimate) if self.granularity is Granularity.WEIGHT else 1.0
        return largest_trainable(estimate.participant.mask, weights, estimate, density)

    def _initial(self, graph: ModelGraph, estimates: Mapping[str, RoundEstimate]) -> dict[str, Mask | None]:
        """Return the first masks of some devices."""
        if self.granularity is Granularity.WEIGHT:
            makers = {
                device: partial(random_weight_mask, estimate, self._density(estimate))
                for device, estimate in estimates.items()
            }
        else:
            enough = self._sparse_enough(graph)
            widths = filled_widths(graph, enough)
            makers = {
                device: partial(random_channel_mask, estimate, enough, widths) for device, estimate in estimates.items()
            }
        return {device: make(self._seed(device)) for device, make in makers.items()}

    def _seed(self, device: str) -> int:
        whose = [device] if self.first_masks is FirstMasks.OWN else []
        return derive(self.mask_seed, "first mask", *whose)

    def _density(self, estimate: RoundEstimate) -> float:
        limit = estimate.participant.budget.weight_density
        return self.density if limit is None else min(self.density, limit)

    def _sparse_enough(self, graph: ModelGraph) -> Callable[[Cost], bool]:
        return lambda cost: cost.parameters <= self.density * graph.parameters


def _can_send_values_only(capabilities: Capabilities | None) -> bool:
    return capabilities is None or f"{PruneRegrow.name}.values_only" in capabilities.rules


def _largest_weights(model: Model, fraction: float) -> Mask:
    """Return the largest weights of every tensor, as many of each as ERK gives it; norms and biases are held whole."""
    whole = full_mask(model.graph)
    counts = erk_counts(whole, fraction)
    held = {name: highest(np.abs(model.weights[name]), count) for name, count in counts.items()}
    return Mask(model.graph, whole.trained, whole.kept, held)
