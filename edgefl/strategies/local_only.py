"""Strategy `local`: every device trains alone, and nothing is averaged. The baseline that a federation has to beat.

The coordinator plans the rounds and receives the accuracy of the devices' models. A device starts from the first model,
and then continues with its own (rule `local_training`); so it keeps its submodel, unless it can no longer train it in
time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.local_rules import Descent, LocalTraining
from edgefl.masks import Mask, Weights, check_weights
from edgefl.model_graph import ModelGraph
from edgefl.planning import widest
from edgefl.strategies.averaging_strategy import share_equal_masks
from edgefl.strategies.personalisation import check_personal
from edgefl.strategies.round_estimate import RoundEstimate, round_estimates
from edgefl.strategies.strategy import ClientUpdate, ClientUpdates, Model, Participant, PlannedTask, RoundContext
from edgefl.strategies.uplink import rule_settings
from edgefl.strategies.widths import Widths
from edgefl.values import PositiveCount, check_fields

__all__ = ["LocalOnly"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOnly:
    """Training without a federation."""

    name: ClassVar[str] = "local"
    descent: Descent = field(default_factory=Descent)
    widths: Widths = field(default_factory=Widths)
    assumed_samples: PositiveCount = 1000

    def __post_init__(self) -> None:
        check_fields(self)

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Start from the weights as they are."""
        check_weights(graph, weights)
        return Model(graph, weights)

    def plan(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Let every device continue with its submodel, or give it one."""
        rule = rule_settings(LocalTraining(descent=self.descent))
        estimates = round_estimates(model.graph, participants, round_context, self.assumed_samples)
        masks = self.widths.masks(estimates, round_context) | _current_masks(estimates)
        return {
            device: PlannedTask(mask, rule, round_context.work, predicted=estimates[device].prediction(mask))
            for device, mask in share_equal_masks(masks).items()
        }

    def check(self, update: ClientUpdate) -> None:
        """Refuse any tensor: devices keep what they learn."""
        check_personal(update)

    def movement(self, update: ClientUpdate) -> float:
        """Return 0: the model does not move."""
        return 0.0

    def combine(self, model: Model, updates: ClientUpdates, round_context: RoundContext) -> Model:
        """Leave the model as it is."""
        return model

    def personalise(
        self, model: Model, participants: Sequence[Participant], round_context: RoundContext
    ) -> Mapping[str, PlannedTask]:
        """Return no tasks: every device has its own model already."""
        return {}

    def extract(self, model: Model, fraction: float, seed: int) -> Mask:
        """Return the leading channels."""
        return widest(model.graph, lambda cost: cost.parameters <= fraction * model.graph.parameters, multiple=1)


def _current_masks(estimates: Mapping[str, RoundEstimate]) -> dict[str, Mask]:
    """Return the submodels that devices have and can still train in time."""
    had = {device: estimate.participant.mask for device, estimate in estimates.items()}
    return {device: mask for device, mask in had.items() if mask is not None and estimates[device].can_train(mask)}
