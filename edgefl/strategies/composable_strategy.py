"""Base class of strategies whose channels, frozen layers, uplink and local work are settings, in any combination.

Each is a setting of its own (`widths.py`, `freezing.py`, `uplink_choice.py`, `local_work.py`), independent of the
others. A strategy sets their defaults as in its paper; what it does beyond them is in its own file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edgefl.masks import Mask, Weights
from edgefl.model_graph import ModelGraph
from edgefl.strategies.averaging_strategy import FineTunedStrategy
from edgefl.strategies.freezing import Freezing, FrozenLayers, body_of
from edgefl.strategies.local_work import LocalWorkChoice
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.strategy import Model, Participant, RoundContext
from edgefl.strategies.uplink import Uplink
from edgefl.strategies.uplink_choice import UplinkChoice
from edgefl.strategies.widths import Widths

__all__ = ["ComposableStrategy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposableStrategy(FineTunedStrategy):
    """A strategy that averages submodels, which its settings choose."""

    widths: Widths = field(default_factory=Widths)
    freezing: Freezing = field(default_factory=Freezing)
    uplinks: UplinkChoice = field(default_factory=UplinkChoice)
    local_work: LocalWorkChoice = field(default_factory=LocalWorkChoice)

    @property
    def uplink(self) -> Uplink:
        """The uplink that the settings choose."""
        return self.uplinks.build(self.descent)

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Start from the weights as they are; refuse to freeze the head of a model that is all head."""
        if self.freezing.frozen is not FrozenLayers.NONE:
            body_of(graph)
        return FineTunedStrategy.begin(self, graph, weights)

    def submodels(
        self, model: Model, estimates: Mapping[str, RoundEstimate], round_context: RoundContext
    ) -> Mapping[str, Mask]:
        """Give every device the submodel that it can train in time; leave out devices that can train none."""
        return self.freezing.submodels(self.widths, estimates, round_context).masks

    def explain(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, float]:
        """Return the figures of the freezing planner; empty if nothing is planned."""
        return self.freezing.submodels(
            self.widths, self._estimates(model, participants, round_context), round_context
        ).figures

    def _estimates(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> dict[str, RoundEstimate]:
        return self.local_work.fitted(FineTunedStrategy._estimates(self, model, participants, round_context))
