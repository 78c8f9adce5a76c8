"""A strategy of your own: federated averaging with momentum on the coordinator.

Hsu et al., "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification", 2019:

    v <- momentum * v + (average - model)        model <- model + v

`docs/own_strategy.md` goes through this file. Run it:

    edgefl simulate --strategy examples.own_strategy:ServerMomentum --set server_momentum=0.5
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from edgefl.local_rules import Descent
from edgefl.strategies import AggregationSettings, ClientUpdates, Model, RoundContext
from edgefl.strategies.averaging_strategy import AveragingStrategy
from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.strategies.freezing import Freezing
from edgefl.strategies.personalisation import Personalisation
from edgefl.strategies.uplinks import UplinkChoice
from edgefl.strategies.widths import Widths
from edgefl.values import Fraction, PositiveCount, check_fields

__all__ = ["ServerMomentum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMomentum(ComposableStrategy):
    """Federated averaging whose model keeps part of its speed from round to round."""

    name: ClassVar[str] = "server_momentum"
    server_momentum: Fraction = 0.5
    """The share of its speed that the model keeps."""
    descent: Descent = field(default_factory=Descent)
    widths: Widths = field(default_factory=Widths)
    freezing: Freezing = field(default_factory=Freezing)
    uplinks: UplinkChoice = field(default_factory=UplinkChoice)
    averaging: AggregationSettings = field(default_factory=AggregationSettings)
    personal: Personalisation = field(default_factory=Personalisation)
    assumed_samples: PositiveCount = 1000

    def __post_init__(self) -> None:
        check_fields(self)

    def combine(self, model: Model, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Average as always, then move on by the speed. What nobody trained in this round stays where it is."""
        averaged = AveragingStrategy.combine(self, model, updates, round_context).weights
        weights, speeds = dict(averaged), dict(model.state)
        for tensor in model.graph.tensors:
            name = tensor.name
            if not tensor.dtype.startswith("float"):
                continue  # a counter has no speed
            change = averaged[name] - model.weights[name]
            before = model.state.get(name, np.zeros_like(change))
            speeds[name] = np.where(change == 0, before, np.float32(self.server_momentum) * before + change)
            weights[name] = np.where(change == 0, model.weights[name], model.weights[name] + speeds[name])
        return Model(model.graph, weights, speeds)
