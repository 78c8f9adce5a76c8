"""What strategies share about the end of a federation: every device makes the last model its own.

PerFedMask and FedBABU fine-tune all parameters after the last round, and any other method may: a setting of every
strategy that averages. What comes of it stays on the device; the coordinator hears how good it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from edgefl.local_rules import Descent, FineTune
from edgefl.local_rules.descent import Positive, Schedule
from edgefl.local_rules.fine_tune import Head
from edgefl.masks import Mask
from edgefl.strategies.local_round import LocalRound
from edgefl.strategies.strategy import Contribution, Moment, Order
from edgefl.strategies.uplink import settings_for
from edgefl.strategies.uploads import check_mask_kept
from edgefl.values import Count, check_fields
from edgefl.wire import check_tensors

__all__ = ["Personalising", "check_personal", "fine_tuning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Personalising:
    """How devices make the last model their own."""

    fine_tune_epochs: Count = 0
    """Passes over its own data that each device makes after the last round; 0 leaves the model as it is."""
    fine_tune_rate: Positive | None = field(default=None, metadata={"absent": "that of the training"})
    fine_tune_head: Head = Head.TRAIN

    def __post_init__(self) -> None:
        check_fields(self)


def check_personal(contribution: Contribution) -> None:
    """Refuse tensors from a device that was to keep what it learned."""
    check_mask_kept(contribution)
    check_tensors(contribution.tensors, {})


def fine_tuning(
    settings: Personalising,
    descent: Descent,
    rounds: Mapping[str, LocalRound],
    masks: Mapping[str, Mask],
    moment: Moment,
) -> dict[str, Order]:
    """Return the orders to fine-tune, by device: all layers of the channels that each has."""
    if not settings.fine_tune_epochs:
        return {}
    rate = settings.fine_tune_rate or descent.learning_rate
    rule = settings_for(
        FineTune(
            descent=replace(descent, learning_rate=rate, schedule=Schedule.CONSTANT, proximal=0.0),
            head=settings.fine_tune_head,
        )
    )
    work = replace(moment.work, epochs=settings.fine_tune_epochs, most_steps=None)
    orders = {}
    for device, mask in masks.items():
        tuned = Mask(mask.graph, frozenset(mask.graph.trainable_layers), mask.kept, mask.held)
        predicted = replace(rounds[device], work=work).prediction(tuned)
        orders[device] = Order(tuned, rule, work, predicted=predicted)
    return orders
