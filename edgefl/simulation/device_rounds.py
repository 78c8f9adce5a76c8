"""The record that a run keeps of one device's task, from the task and its outcome."""

from dataclasses import replace

from edgefl.local_rules import arrays_cost, networks_of, only_forward, rule_of
from edgefl.masks import Mask
from edgefl.planning import TrainingLoad
from edgefl.simulation.fleet import FleetDevice
from edgefl.simulation.job_dispatch import DispatchedJob
from edgefl.simulation.jobs import TrainingOutcome
from edgefl.simulation.results import DeviceRound
from edgefl.simulation.task_time import spent
from edgefl.wire import ResultBody

__all__ = ["device_round", "kept_fraction", "own_accuracy"]


def device_round(
    device: FleetDevice,
    dispatched: DispatchedJob,
    outcome: TrainingOutcome,
    body: ResultBody | None,
    load: TrainingLoad,
) -> DeviceRound:
    """Return the record of a task by a rule of this load.

    A device that prunes before it trains is charged for what it trained, which is the mask that it sends.
    """
    planned = dispatched.planned
    worked_on = planned.works_on if body is None or body.next_mask is None else body.next_mask
    rule = rule_of(planned.rule)
    networks = networks_of(rule, worked_on)
    cost, load = networks[0].cost, replace(load, runs=load.runs * len(networks))
    if only_forward(rule):
        cost, load = planned.forward_cost, TrainingLoad()
    result = None if body is None else body.result
    steps = 0 if result is None else result.steps
    seen = 0 if result is None else min(steps * planned.work.batch_size, planned.work.epochs * result.samples)
    up_bytes = 0 if outcome.body is None else len(outcome.body)
    took = spent(
        device,
        cost,
        batch=planned.work.batch_size,
        steps=steps,
        load=load,
        around=arrays_cost(worked_on) if len(networks) > 1 else None,
        down_bytes=dispatched.job.down_bytes,
        up_bytes=up_bytes,
    )
    return DeviceRound(
        device_id=dispatched.device_id,
        kept_fraction=kept_fraction(worked_on),
        trained_fraction=worked_on.cost.trained_parameters / max(planned.mask.graph.parameters, 1),
        down_bytes=dispatched.job.down_bytes - dispatched.setup_bytes,
        setup_bytes=dispatched.setup_bytes,
        up_bytes=up_bytes,
        steps=steps,
        multiply_adds=load.engine_runs(steps)
        * seen
        * (cost.forward_multiply_adds + cost.backward_multiply_adds)
        // max(steps, 1),
        predicted_seconds=None if planned.predicted is None else planned.predicted.seconds,
        measured_seconds=outcome.seconds,
        step_seconds=outcome.step_seconds,
        loss=0.0 if result is None else result.loss,
        own_accuracy=own_accuracy(outcome),
        refused=outcome.refused,
        simulated_seconds=took.seconds,
        joules=took.joules,
        peak_bytes=took.peak_bytes,
        samples=device.data.samples,
        mask=planned.mask.digest,
    )


def own_accuracy(outcome: TrainingOutcome) -> float | None:
    """Return how good the device's own model is on its own test samples; None if it has none."""
    return None if outcome.own is None else outcome.own.accuracy


def kept_fraction(mask: Mask) -> float:
    """Return the share of the model's parameters that a part has."""
    return mask.cost.parameters / max(mask.graph.parameters, 1)
