"""A strategy of your own: federated averaging with momentum on the coordinator.

Hsu et al., "Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification", 2019:

    v <- momentum * v + (average - model)        model <- model + v

`docs/own_strategy.md` explains this file. Run it:

    edgefl simulate --strategy examples.own_strategy:ServerMomentum --set server_momentum=0.5
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgefl.strategies import ClientUpdates, ComposableStrategy, Model, RoundContext
from edgefl.values import Fraction

__all__ = ["ServerMomentum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMomentum(ComposableStrategy):
    """Federated averaging whose model keeps part of its velocity from round to round."""

    name: ClassVar[str] = "server_momentum"
    server_momentum: Fraction = 0.5
    """The share of its velocity that the model keeps."""

    def combine(self, model: Model, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Average as usual, then move on by the velocity. A weight that no device trained in this round stays put."""
        averaged = ComposableStrategy.combine(self, model, updates, round_context).weights
        weights, velocities = dict(averaged), dict(model.state)
        for tensor in model.graph.tensors:
            name = tensor.name
            if not tensor.dtype.startswith("float"):
                continue  # a counter has no velocity
            change = averaged[name] - model.weights[name]
            before = model.state.get(name, np.zeros_like(change))
            velocities[name] = np.where(change == 0, before, np.float32(self.server_momentum) * before + change)
            weights[name] = np.where(change == 0, model.weights[name], model.weights[name] + velocities[name])
        return Model(model.graph, weights, velocities)
