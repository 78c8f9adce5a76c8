"""Fine-tuning at the end of a federation: every device adapts the last model to its own data.

PerFedMask and FedBABU fine-tune all parameters after the last round, and any other method may: it is a setting of every
strategy that averages. The result stays on the device; the coordinator receives its accuracy.

Fine-tuning may take longer than a round of training, but not more memory than a device has: if all layers are too many,
those nearest to the input stay frozen, as many as necessary, and a device that cannot even fine-tune the last one is
left out. On an engine that runs compiled programs, what is fine-tuned is what one of its programs trains.

The rate is that of the last round, as in PerFedMask's code, which goes on from the checkpoint of the last round: the
first rate of a schedule would undo what its small rates have found. The coordinator computes it, and plans a constant
rate, so that devices need to know nothing about it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from edgefl.local_rules import Descent, FineTune
from edgefl.local_rules.descent import SMALLEST_RATE, Positive, Schedule
from edgefl.local_rules.fine_tune import HeadTreatment
from edgefl.masks import Mask
from edgefl.model_graph import ModelGraph, TensorRole
from edgefl.planning import TrainingLoad
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.strategy import ClientUpdate, PlannedTask, RoundContext
from edgefl.strategies.update_checks import check_mask_kept
from edgefl.strategies.uplink import rule_settings
from edgefl.values import Count, Prediction, check_fields
from edgefl.wire import check_tensors

__all__ = ["Personalisation", "check_personal", "fine_tuning_tasks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Personalisation:
    """How devices fine-tune the last model."""

    fine_tune_epochs: Count = 0
    """The number of passes over its own data that each device makes after the last round; 0 leaves the model as it is.
    """
    fine_tune_rate: Positive | None = field(default=None, metadata={"absent": "that of the last round"})
    fine_tune_head: HeadTreatment = HeadTreatment.TRAIN

    def __post_init__(self) -> None:
        check_fields(self)


def check_personal(update: ClientUpdate) -> None:
    """Refuse tensors from a device that keeps what it learns."""
    check_mask_kept(update)
    check_tensors(update.tensors, {})


def fine_tuning_tasks(
    settings: Personalisation,
    descent: Descent,
    estimates: Mapping[str, RoundEstimate],
    masks: Mapping[str, Mask],
    round_context: RoundContext,
    predict: Callable[[RoundEstimate, Mask], Prediction] = RoundEstimate.prediction,
) -> dict[str, PlannedTask]:
    """Return fine-tuning tasks by device: all layers of each device's channels, or what its memory allows.

    `predict` tells what a round takes with a submodel.
    """
    if not settings.fine_tune_epochs:
        return {}
    rate = settings.fine_tune_rate or _last_rate(descent, round_context.rounds)
    local = FineTune(
        descent=replace(descent, learning_rate=rate, schedule=Schedule.CONSTANT, proximal=0.0),
        head=settings.fine_tune_head,
    )
    rule = rule_settings(local)
    work = replace(round_context.work, epochs=settings.fine_tune_epochs, most_steps=None)
    planned_tasks = {}
    made: dict[tuple[int, int], Mask] = {}  # equal masks are one object, before and after
    for device, mask in masks.items():
        limit = estimates[device].participant.budget.peak_bytes
        for trained in _from_all_to_few(mask.graph, settings.fine_tune_head):
            key = id(mask), len(trained)
            tuned = made[key] = made.get(key) or Mask(mask.graph, trained, mask.kept, mask.held)
            estimate = replace(estimates[device], work=work, load=TrainingLoad())
            counted = local.trains(tuned) if estimate.on_rungs else tuned
            predicted = predict(estimate, counted) if estimate.runs(counted) else None
            if predicted is None:
                continue
            if limit is None or predicted.peak_bytes is None or predicted.peak_bytes <= limit:
                planned_tasks[device] = PlannedTask(tuned, rule, work, predicted=predicted)
                break
    return planned_tasks


def _last_rate(descent: Descent, rounds: int) -> float:
    """Return the rate of the last round. A schedule may reach zero, which is not a rate that a plan can contain."""
    return max(descent.round_rate(max(rounds - 1, 0), rounds), SMALLEST_RATE)


def _from_all_to_few(graph: ModelGraph, head: HeadTreatment) -> Iterator[frozenset[str]]:
    """Yield all layers, all but the first, all but the first two, while the rule has one to fine-tune among them."""
    heads = {graph.layer_of[tensor.name] for tensor in graph.tensors if tensor.role is TensorRole.HEAD}
    for first in range(len(graph.trainable_layers)):
        trained = frozenset(graph.trainable_layers[first:])
        if head is not HeadTreatment.FREEZE or trained - heads:
            yield trained
