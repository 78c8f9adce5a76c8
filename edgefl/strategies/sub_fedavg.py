"""Strategy `sub_fedavg`: every device prunes weights that it can do without, and ends with a sparse model of its own.

Vahidian, Morafah and Lin, "Personalized Federated Learning by Structured and Unstructured Pruning under Data
Heterogeneity", ICDCS Workshops 2021, Algorithm 1, the unstructured form (Un). A device starts from the whole model,
or from the widest submodel that it can train in time, and prunes after it has trained (rule `weight_pruning`). The
coordinator keeps its mask, which only shrinks, averages every weight over the devices that still hold it, and sends a
device what its mask holds of the result. A baseline of FedSpa.

What the paper leaves open, and what is done here:
- A weight that no device of a round holds keeps its value, and all devices count the same: both as in the authors'
  code.
- The target is a share of the submodel's parameters, norms and biases included, as the code counts them. Its defaults
  are those of the authors' script: 10 % of the remaining weights at a time, down to 70 %. FedSpa compares with 5 %,
  down to 50 %.
- Missing weights save bytes but no time, because engines work on whole arrays. A device that may hold fewer weights
  than the whole submodel (`weight_density` of its budget) is left out: it would have to train the dense one first.
- If a device's submodel becomes too large for it, as it turns out to have more data, the channels of the lowest
  magnitude go.

The hybrid form (Hy), which also prunes channels of convolutions by the factors of their batch norms, is not here: it
needs networks with such norms and a penalty on the factors. `hermes` prunes channels.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.local_rules import Descent, WeightPruning
from edgefl.local_rules.erk import erk_densities
from edgefl.masks import Mask, Weights, full_mask
from edgefl.model_graph import ModelGraph, cost_of
from edgefl.strategies.aggregation import AggregationSettings, UpdateWeighting
from edgefl.strategies.averaging_strategy import FineTunedStrategy
from edgefl.strategies.largest_channels import largest_fraction, largest_trainable
from edgefl.strategies.new_mask_uplinks import PrunedWeightsUplink
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.strategy import Model, RoundContext
from edgefl.values import Fraction

__all__ = ["SubFedAvg"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubFedAvg(FineTunedStrategy):
    """Personal sparse models by pruning of weights; the defaults are those of the authors' script."""

    name: ClassVar[str] = "sub_fedavg"
    descent: Descent = field(default_factory=lambda: Descent(learning_rate=0.01, momentum=0.5))
    accuracy_threshold: Fraction = 0.5
    """A device prunes when its accuracy on its validation data would be above this afterwards."""
    kept_target: Fraction = 0.7
    """The share of its submodel's parameters at which pruning ends."""
    prune_rate: Fraction = 0.1
    """The share of the remaining weights of every tensor that goes in one round."""
    mask_distance: Fraction = 1e-4
    """epsilon: a device prunes when the masks after its first and its last pass differ in more than this share."""
    averaging: AggregationSettings = field(default_factory=lambda: AggregationSettings(weighing=UpdateWeighting.EQUAL))

    @property
    def uplink(self) -> PrunedWeightsUplink:
        """New values of the remaining weights, and the new mask."""
        return PrunedWeightsUplink(
            WeightPruning(
                descent=self.descent,
                accuracy_threshold=self.accuracy_threshold,
                target=self.kept_target,
                rate=self.prune_rate,
                distance=self.mask_distance,
            )
        )

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Start from the weights as they are, if the model can be as sparse as requested."""
        erk_densities(full_mask(graph), self.kept_target)
        return FineTunedStrategy.begin(self, graph, weights)

    def submodels(
        self, model: Model, estimates: Mapping[str, RoundEstimate], round_context: RoundContext
    ) -> Mapping[str, Mask]:
        """Give every device its remaining weights; at first as much as it can train in time."""
        found = {device: _remaining(estimate, model.weights) for device, estimate in estimates.items()}
        return {device: mask for device, mask in found.items() if mask is not None}

    def extract(self, model: Model, fraction: float, seed: int) -> Mask:
        """Return the channels of the largest magnitude."""
        return largest_fraction(model, fraction)


def _remaining(estimate: RoundEstimate, weights: Weights) -> Mask | None:
    """Return a device's current mask, or as much of it as it can train; its first one is dense."""
    own = estimate.participant.mask
    if own is None:
        return estimate.widest()
    density = own.cost.parameters / cost_of(own.graph, own.widths).parameters
    return largest_trainable(own, weights, estimate, density)
