"""An estimate of one device's round: its number of steps, what it takes, and which submodel fits.

Strategies use this when they plan. `edgefl.planning` knows what a step takes, and the budget how much is too much.
"""

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field, replace

from edgefl.masks import Mask
from edgefl.model_graph import Cost, ModelGraph, cost_of
from edgefl.planning import predict
from edgefl.strategies.strategy import Participant, RoundContext
from edgefl.values import LARGEST_INTEGER, Budget, LocalWork, Prediction

__all__ = ["RoundEstimate", "round_estimates"]


@dataclass(frozen=True, slots=True, eq=False)
class RoundEstimate:
    """The work of a round on one device."""

    graph: ModelGraph
    participant: Participant
    work: LocalWork
    assumed_samples: int
    """The number of training samples of a device that has not reported it."""
    costs: MutableMapping[int, Cost] = field(default_factory=dict)
    """The costs of submodels, shared by the estimates of several devices."""
    models: int = 1
    """The number of models of the submodel's size that the device trains, a step with each in turn: Ditto trains two.
    """

    @property
    def samples(self) -> int:
        """The number of training samples of the device, or an assumption."""
        return self.participant.samples or self.assumed_samples

    @property
    def steps(self) -> int:
        """The number of training steps of the round. As on the device, a last batch of one sample is left out."""
        whole, rest = divmod(self.samples, self.work.batch_size)
        steps = self.work.epochs * (whole + (rest > 1 or whole == 0))
        return min(steps, self.work.most_steps or steps)

    def cost(self, mask: Mask) -> Cost:
        """Return the cost for the engine: arrays are whole, however few of their weights are held."""
        return cost_of(self.graph, mask.widths, mask.trained) if mask.held else mask.cost

    def use(self, cost: Cost, density: float = 1.0) -> Budget:
        """Return what the round takes with a submodel of this cost that holds this share of its weights."""
        batch = min(self.work.batch_size, self.samples)
        use = predict(self.participant.profile, cost, batch=batch, steps=self.steps * self.models)
        beside = (self.models - 1) * cost.parameter_bytes
        return replace(
            use,
            peak_bytes=None if use.peak_bytes is None else min(use.peak_bytes + beside, LARGEST_INTEGER),
            kept_fraction=cost.parameters / max(self.graph.parameters, 1),
            weight_density=density,
        )

    def fits(self, cost: Cost, density: float = 1.0) -> bool:
        """Return whether the round stays within the device's budget."""
        return not self.participant.budget.exceeded_by(self.use(cost, density))

    def prediction(self, mask: Mask) -> Prediction:
        """Return what the round takes, in the form that a plan holds."""
        use = self.use(self.cost(mask))
        return Prediction(seconds=use.round_seconds, peak_bytes=use.peak_bytes, joules=use.joules)


def round_estimates(
    graph: ModelGraph,
    participants: Sequence[Participant],
    round_context: RoundContext,
    assumed_samples: int,
    models: int = 1,
) -> dict[str, RoundEstimate]:
    """Return the estimates of some devices by their ids; they share a cache of costs."""
    costs: dict[int, Cost] = {}
    return {
        participant.device_id: RoundEstimate(graph, participant, round_context.work, assumed_samples, costs, models)
        for participant in participants
    }
