"""Strategy `fedavg`: devices train their part of the model by gradient descent, and the new values are averaged.

McMahan et al. 2017, Algorithm 1, with the parts of HeteroFL (Diao et al. 2021): a device trains the widest submodel of
leading channels that it can train in time, and each coordinate is averaged over those that held it. With a proximal
term it is FedProx.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from edgefl.local_rules import Descent, Sgd
from edgefl.masks import Mask, Weights, check_weights
from edgefl.model_graph import Cost, ModelGraph
from edgefl.strategies.averages import Averaging, average
from edgefl.strategies.local_round import LocalRound
from edgefl.strategies.strategy import Contribution, Contributions, Model, Moment, Order, Participant
from edgefl.strategies.uploads import check_mask_kept, check_values, movement
from edgefl.values import PositiveCount, RuleSettings, check_fields, settings_from

__all__ = ["Fedavg", "Width"]


class Width(StrEnum):
    """Which part of the model a device trains."""

    FIT = "fit"
    """The widest one that it can train within its budget."""
    FULL = "full"
    """All of it; a device that cannot is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fedavg:
    """Federated averaging."""

    name: ClassVar[str] = "fedavg"
    descent: Descent = field(default_factory=Descent)
    """How devices train."""
    width: Width = Width.FIT
    averaging: Averaging = field(default_factory=Averaging)
    assumed_samples: PositiveCount = 1000
    """Training samples that a device is planned with until its first result says how many it has."""

    def __post_init__(self) -> None:
        check_fields(self)

    def begin(self, graph: ModelGraph, weights: Weights) -> Model:
        """Start from the weights as they are."""
        check_weights(graph, weights)
        return Model(graph, weights)

    def plan(self, model: Model, participants: Sequence[Participant], moment: Moment) -> Mapping[str, Order]:
        """Give every device the part that it can train in time; leave out those that can train none."""
        rule = RuleSettings(name=Sgd.name, settings=settings_from(Sgd(descent=self.descent)))
        masks: dict[tuple[tuple[str, int], ...], Mask] = {}
        costs: dict[int, Cost] = {}
        orders = {}
        for participant in participants:
            round_ = LocalRound(model.graph, participant, moment.work, self.assumed_samples, costs)
            mask = round_.widest_mask() if self.width is Width.FIT else round_.whole_mask()
            if mask is not None:
                # Equal parts are one mask, whose digest and selectors are then computed once.
                mask = masks.setdefault(tuple(mask.widths.items()), mask)
                orders[participant.device_id] = Order(mask, rule, moment.work, predicted=round_.prediction(mask))
        return orders

    def check(self, contribution: Contribution) -> None:
        """Refuse anything but the new values of what the device was to train."""
        check_mask_kept(contribution)
        check_values(contribution.mask, contribution.tensors)

    def movement(self, contribution: Contribution) -> float:
        """Return how far the contribution moves its part."""
        return movement(contribution)

    def combine(self, model: Model, contributions: Contributions, moment: Moment) -> Model:
        """Average."""
        return dataclasses.replace(model, weights=average(self.averaging, model, contributions))
