"""The entry point of the planner: which blocks each device of a fleet trains.

plan = freezing_plan(graph, devices)
plan.assignments["pi-4"].trained        names of layers, for `Mask.of(graph, trained=...)`
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

import numpy as np

from edgefl.errors import MaskError
from edgefl.model_graph import Cost, ModelGraph, cost_of
from edgefl.planning.freezing.approximate import approximate_plan
from edgefl.planning.freezing.baselines import random_plan, sequential_plan
from edgefl.planning.freezing.bias import Flags, bias_of, coverage_of
from edgefl.planning.freezing.blocks import Block, freezing_blocks
from edgefl.planning.freezing.candidate_sets import Integers
from edgefl.planning.freezing.device import FreezingDevice
from edgefl.planning.freezing.exact import exact_plan, is_small
from edgefl.planning.freezing.problem import CandidatePlan, Problem, UncoveredError, problem_of
from edgefl.planning.freezing.relaxation import lower_bound
from edgefl.planning.freezing.sca import sca_plan
from edgefl.planning.freezing.set_costs import SetCosts
from edgefl.values import Budget

__all__ = ["FreezingAssignment", "FreezingPlan", "PlanningMethod", "freezing_plan"]


_FEW_NODES = 150
"""The number of nodes that a solver visits in a second or two."""


class PlanningMethod(StrEnum):
    """How to choose the blocks."""

    AUTO = "auto"
    """Exact if that takes seconds, approximate otherwise."""
    EXACT = "exact"
    """The best plan, however long it takes, within a number of solver nodes."""
    APPROXIMATE = "approximate"
    SCA = "sca"
    """The paper's successive convex approximation."""
    RANDOM = "random"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True)
class FreezingAssignment:
    """What one device trains."""

    blocks: tuple[str, ...]
    trained: tuple[str, ...]
    """The names of the trained layers; empty if the device can train nothing."""
    parameters: int
    unused: int
    """The number of further parameters that its budget allows; below 0 only if it may exceed its budget."""
    use: Budget | None
    """The prediction for its round, or None without a profile or a model graph."""


@dataclass(frozen=True, slots=True)
class FreezingPlan:
    """Which device trains what, and how good that is. Bias and bound are in parameters, as in the paper."""

    assignments: Mapping[str, FreezingAssignment]
    """By device id."""
    dimension: int
    """The number of parameters of all blocks, without the head: d in the paper."""
    bias: float
    lower_bound: float
    """No plan that obeys the rules has a bias below this."""
    coverage: Mapping[str, float]
    """The share of all samples that trains each block; never 0."""
    method: PlanningMethod

    @property
    def gap(self) -> float:
        """How far the bias may be from the best, as a share of it; 0 is proven best."""
        return 0.0 if self.bias <= 0 else max(0.0, 1 - self.lower_bound / self.bias)

    @property
    def unused(self) -> int:
        """The number of further parameters that all budgets together allow."""
        return sum(assignment.unused for assignment in self.assignments.values())


def freezing_plan(
    model: ModelGraph | Sequence[Block],
    devices: Sequence[FreezingDevice],
    *,
    method: PlanningMethod | str = PlanningMethod.AUTO,
    tolerance: float = 0.05,
    seed: int = 0,
    beyond_budget: bool = False,
) -> FreezingPlan:
    """Choose which blocks each device trains, by the rules in `problem.py`.

    Without a graph there is no notion of time: then only the parameters of devices may be limited. `beyond_budget` lets
    the strongest device train what no device can afford; otherwise that raises an error which names the block.
    """
    if not 0 <= tolerance < 1:
        raise MaskError(f"the tolerance is {tolerance}", fix="Give a number of at least 0 and below 1.")
    graph = model if isinstance(model, ModelGraph) else None
    blocks = freezing_blocks(model) if isinstance(model, ModelGraph) else tuple(model)
    if graph is None and any(device.is_timed for device in devices):
        raise MaskError("there is a limit of time, memory or energy, but no model graph", fix="Give the model graph.")
    extra: tuple[Block, ...] = ()
    while True:
        affordable = tuple(block for block in blocks if block not in extra)
        try:
            problem = _problem(graph, affordable, devices, tolerance, seed)
            found = _found(problem, PlanningMethod(method), seed)
        except UncoveredError as error:
            extra += tuple(block for block in affordable if block.name in error.blocks)
            if not beyond_budget or len(extra) == len(blocks):
                raise
        else:
            return _finished(graph, problem, found, extra, PlanningMethod(method))


def _problem(
    graph: ModelGraph | None,
    blocks: tuple[Block, ...],
    devices: Sequence[FreezingDevice],
    tolerance: float,
    seed: int,
) -> Problem:
    timed = graph is not None and any(device.is_timed for device in devices)
    set_costs = SetCosts.of(graph, blocks) if graph is not None and timed else None
    return problem_of(blocks, set_costs, devices, tolerance=tolerance, seed=seed)


def _found(problem: Problem, method: PlanningMethod, seed: int) -> CandidatePlan:
    match method:
        case PlanningMethod.SCA:
            return _evaluated(problem, sca_plan(problem, seed))
        case PlanningMethod.RANDOM:
            return _evaluated(problem, random_plan(problem, seed))
        case PlanningMethod.SEQUENTIAL:
            return _evaluated(problem, sequential_plan(problem))
    found = approximate_plan(problem, seed)
    if method is PlanningMethod.EXACT:
        return exact_plan(problem, found)
    return (
        exact_plan(problem, found, nodes=_FEW_NODES) if method is PlanningMethod.AUTO and is_small(problem) else found
    )


def _evaluated(problem: Problem, chosen: Integers) -> CandidatePlan:
    bias = bias_of(problem.pool[chosen], problem.weights)
    return CandidatePlan(chosen, bias, min(bias, lower_bound(problem)))


def _finished(
    graph: ModelGraph | None, problem: Problem, found: CandidatePlan, extra: tuple[Block, ...], method: PlanningMethod
) -> FreezingPlan:
    """Turn rows into names. What no device can afford goes to the strongest device."""
    blocks = (*problem.blocks, *extra)
    trained = np.pad(problem.pool[found.chosen], ((0, 0), (0, len(extra))))
    bias, bound = found.bias, found.bound
    if extra:
        strongest = _strongest(problem)
        trained[strongest, len(problem.blocks) :] = True
        # Others pay what they paid before; those that do not train these blocks, all but one, pay at least their
        # weight.
        bias = bias_of(trained, problem.weights)
        bound = min(bias, max(bound, 1 - float(problem.weights[strongest])))
    dimension = sum(block.size for block in blocks)
    coverage = coverage_of(trained, problem.weights)
    return FreezingPlan(
        MappingProxyType(_assignments(graph, problem, blocks, trained)),
        dimension,
        bias * dimension,
        bound * dimension,
        MappingProxyType({block.name: float(share) for block, share in zip(blocks, coverage, strict=True)}),
        method,
    )


def _strongest(problem: Problem) -> int:
    """Return the device with the largest budget, among equals the one with most samples."""

    def strength(number: int) -> tuple[float, float, int, int]:
        device = problem.devices[number]
        # Budgets end at the size of the model that all can afford; the limits tell which device has more.
        limit = device.budget.trainable_parameters
        return int(problem.budgets[number]), math.inf if limit is None else limit, device.samples, -number

    return max(range(len(problem.devices)), key=strength)


def _assignments(
    graph: ModelGraph | None, problem: Problem, blocks: tuple[Block, ...], trained: Flags
) -> dict[str, FreezingAssignment]:
    costs: dict[tuple[str, ...], Cost] = {}

    def use(device: FreezingDevice, layers: tuple[str, ...]) -> Budget | None:
        if graph is None or device.profile is None:
            return None
        if layers not in costs:
            costs[layers] = cost_of(graph, None, layers)
        return device.use(costs[layers])

    def assignment(device: FreezingDevice, flags: Flags, budget: int) -> FreezingAssignment:
        chosen = [blocks[number] for number in np.flatnonzero(flags)]
        layers = tuple(layer for block in chosen for layer in block.layers)
        size = sum(block.size for block in chosen)
        return FreezingAssignment(
            tuple(block.name for block in chosen), layers, size, budget - size, use(device, layers)
        )

    nothing = np.zeros(len(blocks), np.bool_)
    assignments = {
        device.device_id: assignment(device, flags, int(budget))
        for device, flags, budget in zip(problem.devices, trained, problem.budgets, strict=True)
    }
    assignments |= {device.device_id: assignment(device, nothing, 0) for device in problem.idle}
    return dict(sorted(assignments.items()))
