"""One device's round before it happens: how many steps it will have, what it will take, and which part fits.

Strategies ask this when they plan. What a step takes is `edgefl.planning`'s knowledge; how much is too much, the
budget's.
"""

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field, replace

from edgefl.masks import Mask
from edgefl.model_graph import Cost, ModelGraph, cost_of
from edgefl.planning import predict
from edgefl.strategies.strategy import Participant, RoundContext
from edgefl.values import Budget, LocalWork, Prediction

__all__ = ["RoundEstimate", "estimates_of"]


@dataclass(frozen=True, slots=True, eq=False)
class RoundEstimate:
    """The work of a round on one device."""

    graph: ModelGraph
    participant: Participant
    work: LocalWork
    assumed_samples: int
    """Training samples of a device that has not said how many it has."""
    costs: MutableMapping[int, Cost] = field(default_factory=dict)
    """What submodels cost, for the rounds of several devices to share."""
    models: int = 1
    """How many models of the part's size the device trains, a step with each in turn: Ditto trains two."""

    @property
    def samples(self) -> int:
        """Training samples of the device, as far as we know."""
        return self.participant.samples or self.assumed_samples

    @property
    def steps(self) -> int:
        """Training steps of the round. As on the device, a last batch of one sample is left out."""
        whole, rest = divmod(self.samples, self.work.batch_size)
        steps = self.work.epochs * (whole + (rest > 1 or whole == 0))
        return min(steps, self.work.most_steps or steps)

    def cost(self, mask: Mask) -> Cost:
        """Return what the engine works on: arrays are whole, however few of their weights are held."""
        return cost_of(self.graph, mask.widths, mask.trained) if mask.held else mask.cost

    def use(self, cost: Cost, density: float = 1.0) -> Budget:
        """Return what the round will take with a part of this cost that holds this share of its weights."""
        batch = min(self.work.batch_size, self.samples)
        use = predict(self.participant.profile, cost, batch=batch, steps=self.steps * self.models)
        beside = (self.models - 1) * cost.parameter_bytes
        return replace(
            use,
            peak_bytes=None if use.peak_bytes is None else use.peak_bytes + beside,
            kept_fraction=cost.parameters / max(self.graph.parameters, 1),
            weight_density=density,
        )

    def fits(self, cost: Cost, density: float = 1.0) -> bool:
        """Return whether the round stays within the device's budget."""
        return not self.participant.budget.exceeded_by(self.use(cost, density))

    def prediction(self, mask: Mask) -> Prediction:
        """Return what the round will take, in a plan's form."""
        use = self.use(self.cost(mask))
        return Prediction(seconds=use.round_seconds, peak_bytes=use.peak_bytes, joules=use.joules)


def estimates_of(
    graph: ModelGraph,
    participants: Sequence[Participant],
    round_context: RoundContext,
    assumed_samples: int,
    models: int = 1,
) -> dict[str, RoundEstimate]:
    """Return the rounds of some devices by their ids; they share what they find out about costs."""
    costs: dict[int, Cost] = {}
    return {
        one.device_id: RoundEstimate(graph, one, round_context.work, assumed_samples, costs, models)
        for one in participants
    }
