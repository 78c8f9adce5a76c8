"""Which devices can run a model forward over their samples, and over how many of them."""

from collections.abc import Sequence
from dataclasses import replace

from edgefl.model_graph import Cost, ModelGraph
from edgefl.strategies.round_estimate import RoundEstimate, largest_fitting
from edgefl.strategies.strategy import Participant, PlannedTask
from edgefl.values import Budget, LocalWork, Prediction

__all__ = ["for_all"]

_USUAL_SAMPLES = 1000


def for_all(task: PlannedTask, graph: ModelGraph, participants: Sequence[Participant]) -> dict[str, PlannedTask]:
    """Return the task of every device that can run the model forward within its memory.

    A device that has no time or energy for all of its samples looks at as many batches of them as it has.
    """
    cost, found = task.forward_cost, dict[str, PlannedTask]()
    for one in participants:
        estimate = _forward_estimate(graph, one, task.work)
        fitting = _fitting(estimate, cost)
        if fitting is not None:
            found[one.device_id] = replace(task, work=fitting.work, predicted=_prediction(fitting.use(cost)))
    return found


def _fitting(estimate: RoundEstimate, cost: Cost) -> RoundEstimate | None:
    """Return the estimate with the most batches that fit the budget; None if not even one does."""
    if estimate.fits(cost):
        return estimate
    found = largest_fitting(1, estimate.steps, lambda steps: _limited(estimate, steps).fits(cost))
    return None if found is None else _limited(estimate, found)


def _limited(estimate: RoundEstimate, steps: int) -> RoundEstimate:
    return replace(estimate, work=replace(estimate.work, most_steps=steps))


def _prediction(use: Budget) -> Prediction:
    return Prediction(seconds=use.round_seconds, peak_bytes=use.peak_bytes, joules=use.joules)


def _forward_estimate(graph: ModelGraph, participant: Participant, work: LocalWork) -> RoundEstimate:
    """Return the estimate of a pass over a device's samples.

    What it may train, or keep for training, says nothing about it; and a graph runs on any engine that has onnxruntime.
    """
    limits = participant.budget
    budget = Budget(round_seconds=limits.round_seconds, peak_bytes=limits.peak_bytes, joules=limits.joules)
    return RoundEstimate(graph, replace(participant, budget=budget, rungs=None), work, _USUAL_SAMPLES)
