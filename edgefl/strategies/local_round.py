"""One device's round before it happens: how many steps it will have, what it will take, and which part fits.

Strategies ask this when they plan. What a step takes is `edgefl.planning`'s knowledge; how much is too much, the
budget's.
"""

from collections.abc import MutableMapping
from dataclasses import dataclass, field, replace

from edgefl.errors import MaskError
from edgefl.masks import Mask, full_mask
from edgefl.model_graph import Cost, ModelGraph
from edgefl.planning import predict, widest
from edgefl.strategies.strategy import Participant
from edgefl.values import Budget, LocalWork, Prediction

__all__ = ["LocalRound"]


@dataclass(frozen=True, slots=True, eq=False)
class LocalRound:
    """The work of a round on one device."""

    graph: ModelGraph
    participant: Participant
    work: LocalWork
    assumed_samples: int
    """Training samples of a device that has not said how many it has."""
    costs: MutableMapping[int, Cost] = field(default_factory=dict)
    """What submodels cost, for the rounds of several devices to share."""

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

    def use(self, cost: Cost) -> Budget:
        """Return what the round will take with a part of this cost; its weights are all held."""
        batch = min(self.work.batch_size, self.samples)
        use = predict(self.participant.profile, cost, batch=batch, steps=self.steps)
        return replace(use, kept_fraction=cost.parameters / max(self.graph.parameters, 1), weight_density=1.0)

    def fits(self, cost: Cost) -> bool:
        """Return whether the round stays within the device's budget."""
        return not self.participant.budget.exceeded_by(self.use(cost))

    def widest_mask(self) -> Mask | None:
        """Return the leading channels of the largest fraction that fits, or None if not even the smallest does."""
        try:
            return widest(self.graph, self.fits, known=self.costs)
        except MaskError:
            return None

    def whole_mask(self) -> Mask | None:
        """Return the mask of the whole model if it fits."""
        whole = full_mask(self.graph)
        return whole if self.fits(whole.cost) else None

    def prediction(self, mask: Mask) -> Prediction:
        """Return what the round will take, in a plan's form."""
        use = self.use(mask.cost)
        return Prediction(seconds=use.round_seconds, peak_bytes=use.peak_bytes, joules=use.joules)
