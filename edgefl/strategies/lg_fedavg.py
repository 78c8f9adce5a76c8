"""Strategy `lg_fedavg`: devices share the last layers of the model, and each has first layers of its own.

Liang et al., "Think Locally, Act Globally: Federated Learning with Local and Global Representations", 2020, Algorithm
1: the coordinator averages the shared layers alone, and nothing else ever leaves a device (rule `shared_layers`). A
baseline of Hermes.

What the paper leaves open, or its authors' code does otherwise, and what is done here:
- The layers that are shared are chosen by hand: `shared_layers` counts them from the output. The default is the 2 of
  the authors' command for CIFAR-10; for MNIST they share 3 of 5. Their list of layers for CIFAR-10 begins with the
  fully connected ones, so its 2 last are the convolutions: `shared_end` "first" is what that command computes.
- The authors start from a model of federated averaging (400 rounds of it before 100 of this for MNIST, 1,200 before
  200 for CIFAR-10). In the first `whole_rounds` rounds everything is shared. A device then goes on with its own
  layers as it last trained them; in the authors' code all begin with the averaged ones.
- The average is over devices, each counting the same, as in the authors' code; `weighing` has FedAvg's weights.
- The device's own model, whose accuracy it reports, is the one after training. The authors put the average of the
  shared layers in it, and keep of every device the best model so far by its test samples, which is not done here.
- The global model has the averaged shared layers, and in the others what all devices started from, which is no model
  of anything: its accuracy says nothing. For new devices the paper evaluates an ensemble of all devices' models,
  which nobody has where they stay on the devices; here a new device trains its own layers.

The weights of a task hold zeros where layers are shared, and are the same in every round, so a device downloads them
once; what the others made of the shared layers comes as extras.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from edgefl.errors import MaskError
from edgefl.local_rules import Descent, SharedLayers, rule_of
from edgefl.local_rules.shared_layers import SHARED, SharedEnd, layer_units, shared_tensors
from edgefl.masks import Mask, Weights, gather
from edgefl.model_graph import ModelGraph
from edgefl.strategies.aggregation import AggregationSettings, UpdateWeighting
from edgefl.strategies.averaging_strategy import AveragingStrategy
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.strategy import ClientUpdate, Model, Participant, PlannedTask, RoundContext
from edgefl.strategies.uplink import ValuesUplink
from edgefl.strategies.widths import Widths
from edgefl.values import Count, PositiveCount

__all__ = ["LGFedAvg"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LGFedAvg(AveragingStrategy):
    """Federated averaging of some layers, under or over layers of every device's own."""

    name: ClassVar[str] = "lg_fedavg"
    shared_layers: PositiveCount = 2
    """The number of layers that are shared; a norm counts with the layer before it."""
    shared_end: SharedEnd = SharedEnd.LAST
    """Whether these are the last or the first layers."""
    whole_rounds: Count = 0
    """The number of rounds, from the first on, in which everything is shared."""
    descent: Descent = field(default_factory=lambda: Descent(learning_rate=0.1, momentum=0.5))
    """As in the authors' command for CIFAR-10."""
    widths: Widths = field(default_factory=Widths)
    averaging: AggregationSettings = field(default_factory=lambda: AggregationSettings(weighing=UpdateWeighting.EQUAL))

    @property
    def uplink(self) -> ValuesUplink:
        """New values of the shared layers."""
        return self._sharing(self.shared_layers)

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Start from the weights as they are, if a layer is left that is not shared."""
        known = len(layer_units(graph))
        if self.shared_layers >= known:
            raise MaskError(
                f"{self.shared_layers} layers are shared, but model {graph.name!r} has {known}",
                fix="Share fewer ('shared_layers'), or choose the strategy 'fedavg'.",
            )
        return AveragingStrategy.begin(self, graph, weights)

    def plan(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Plan a task for every device that gets a submodel: with everything shared at first, then with some layers."""
        planned_tasks = AveragingStrategy.plan(self, model, participants, round_context)
        if round_context.round < self.whole_rounds:
            rule = self._sharing(len(layer_units(model.graph))).rule
            return {device: replace(planned, rule=rule) for device, planned in planned_tasks.items()}
        left_out = {name: np.zeros_like(model.weights[name]) for name in self._shared(model.graph)}
        weights = {**model.weights, **left_out}
        return {device: replace(planned, weights=weights) for device, planned in planned_tasks.items()}

    def submodels(
        self, model: Model, estimates: Mapping[str, RoundEstimate], round_context: RoundContext
    ) -> Mapping[str, Mask]:
        """Give every device the submodel that it can train in time; leave out devices that can train none."""
        return self.widths.masks(estimates, round_context)

    def extras(self, model: Model, mask: Mask, round_context: RoundContext) -> Weights:
        """Return the shared layers as they were averaged."""
        if round_context.round < self.whole_rounds:
            return {}
        shared = gather(mask, model.weights, sorted(self._shared(model.graph)))
        return {SHARED + name: array for name, array in shared.items()}

    def check(self, update: ClientUpdate) -> None:
        """Refuse anything but the new values of the layers that the plan shares."""
        ValuesUplink(rule_of(update.rule)).check(update)

    def _sharing(self, layers: int) -> ValuesUplink:
        return ValuesUplink(SharedLayers(descent=self.descent, layers=layers, end=self.shared_end))

    def _shared(self, graph: ModelGraph) -> frozenset[str]:
        return shared_tensors(graph, self.shared_layers, self.shared_end)
