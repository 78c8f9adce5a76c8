"""From a task and what came of it to the row that a run keeps of it."""

from edgefl.masks import Mask
from edgefl.simulation.fleet import FleetDevice
from edgefl.simulation.handout import Handed
from edgefl.simulation.jobs import TrainingOutcome
from edgefl.simulation.results import DeviceRound
from edgefl.simulation.task_time import spent
from edgefl.wire import ResultBody

__all__ = ["device_round", "kept_fraction", "own_accuracy"]


def device_round(
    device: FleetDevice, handed: Handed, outcome: TrainingOutcome, report: ResultBody | None, models: int
) -> DeviceRound:
    """Return what a device did, if it came to an end; `models` is how many it trains at a time."""
    order, cost = handed.planned, handed.planned.works_on.cost
    steps = 0 if report is None else report.result.steps
    seen = 0 if report is None else min(steps * order.work.batch_size, order.work.epochs * report.result.samples)
    up_bytes = 0 if outcome.body is None else len(outcome.body)
    took = spent(
        device,
        cost,
        batch=order.work.batch_size,
        steps=steps,
        models=models,
        down_bytes=handed.job.down_bytes,
        up_bytes=up_bytes,
    )
    return DeviceRound(
        device_id=handed.device_id,
        kept_fraction=kept_fraction(order.works_on if report is None or report.next_mask is None else report.next_mask),
        trained_fraction=cost.trained_parameters / max(order.mask.graph.parameters, 1),
        down_bytes=handed.job.down_bytes - handed.setup_bytes,
        setup_bytes=handed.setup_bytes,
        up_bytes=up_bytes,
        steps=steps,
        multiply_adds=models * seen * (cost.forward_multiply_adds + cost.backward_multiply_adds),
        predicted_seconds=None if order.predicted is None else order.predicted.seconds,
        measured_seconds=outcome.seconds,
        step_seconds=outcome.step_seconds,
        loss=0.0 if report is None else report.result.loss,
        own_accuracy=own_accuracy(outcome),
        refused=outcome.refused,
        simulated_seconds=took.seconds,
        joules=took.joules,
        peak_bytes=took.peak_bytes,
        samples=device.data.samples,
        mask=order.mask.digest,
    )


def own_accuracy(outcome: TrainingOutcome) -> float | None:
    """Return how good the device's own model is on its own test samples; None if it has none."""
    return None if outcome.own is None else outcome.own.right / outcome.own.samples


def kept_fraction(mask: Mask) -> float:
    """Return the share of the model's parameters that a part has."""
    return mask.cost.parameters / max(mask.graph.parameters, 1)
