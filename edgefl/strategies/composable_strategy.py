"""What strategies share whose parts follow from settings alone: channels, frozen layers and the uplink, in any mixture.

Each of the three is a setting of its own (`widths.py`, `freezing.py`, `uplinks.py`), and none knows of the others. A
strategy names the three with the defaults of its paper; what it does beyond them is in its own file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edgefl.masks import Mask, Weights
from edgefl.model_graph import ModelGraph
from edgefl.strategies.averaging_strategy import FineTunedStrategy
from edgefl.strategies.freezing import Freezing, Frozen, body_of
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.strategy import Model, Participant, RoundContext
from edgefl.strategies.uplink import Uplink
from edgefl.strategies.uplinks import UplinkChoice
from edgefl.strategies.widths import Widths

__all__ = ["ComposableStrategy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposableStrategy(FineTunedStrategy):
    """A strategy that averages parts, which its settings choose."""

    widths: Widths = field(default_factory=Widths)
    freezing: Freezing = field(default_factory=Freezing)
    uplinks: UplinkChoice = field(default_factory=UplinkChoice)

    @property
    def uplink(self) -> Uplink:
        """What the settings say."""
        return self.uplinks.made(self.descent)

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Start from the weights as they are; a model that is all head has nothing to freeze it for."""
        if self.freezing.frozen is not Frozen.NONE:
            body_of(graph)
        return FineTunedStrategy.begin(self, graph, weights)

    def parts(
        self, model: Model, rounds: Mapping[str, RoundEstimate], round_context: RoundContext
    ) -> Mapping[str, Mask]:
        """Give every device the part that it can train in time; leave out those that can train none."""
        return self.freezing.parts(self.widths, rounds, round_context).masks

    def explain(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, float]:
        """Return what the freezing planner has to say about its plan; nothing where nothing is planned."""
        return self.freezing.parts(self.widths, self._rounds(model, participants, round_context), round_context).figures
