"""The best plan of a small fleet: by trying all plans, or by the exact program of `relaxation.py`.

If there are few plans, `enumeration.py` tries each. Otherwise HiGHS solves two programs with one group per device: the
first finds the least bias; the second, among the plans of that bias, the one that leaves least unused. Devices with the
same choices and the same samples are interchangeable, which makes a solver prove the same thing many times, so their
sets are put in order. Both programs start below a known plan and ignore what cannot beat it. If stopped early, the
answer is the known plan or a better one, with the bound that was proven by then.

If the choices are only some of the sets that devices may train, the best of them proves nothing about the others, and
the bound stays the known one.
"""

from dataclasses import replace

import numpy as np

from edgefl.planning.freezing.bias import Reals, bias_of
from edgefl.planning.freezing.candidate_sets import Integers
from edgefl.planning.freezing.enumeration import best_by_enumeration
from edgefl.planning.freezing.problem import CandidatePlan, Problem
from edgefl.planning.freezing.relaxation import ProgramGroup, program_of
from edgefl.planning.freezing.solver import LinearProgram

__all__ = ["exact_plan", "is_small"]

_SAME = 1e-6
"""Biases that differ by less, in units of d, are equal: the solver cannot tell them apart."""


def is_small(problem: Problem, *, most_sets: int = 200) -> bool:
    """Return whether a proof takes only seconds."""
    sets = sum(device_group.choices.size * device_group.devices.size for device_group in problem.groups)
    return problem.lists_every_set and sets <= most_sets


def exact_plan(
    problem: Problem, known: CandidatePlan, *, nodes: int = 20_000, gap: float = 0.0, most_plans: int = 1_000_000
) -> CandidatePlan:
    """Return the plan of least bias and, among those, of least unused budget; `gap` is the tolerated relative gap."""
    found = best_by_enumeration(problem, known, most_plans=most_plans)
    if found is not None:
        return found
    groups = _devices(problem)
    best = known
    if known.bias - known.bound > _SAME:
        program, shares = _program_below(problem, groups, known.bias)
        answer = program.solve(nodes=nodes, gap=gap)
        if answer.values is not None:
            best = _better(problem, best, _chosen(problem, groups, shares, answer.values))
        proven = known.bound
        if problem.lists_every_set:
            proven = max(proven, best.bias if answer.solved and gap == 0 else answer.bound - _SAME)
        best = replace(best, bound=min(best.bias, proven))
    return _least_unused(problem, groups, best, nodes)


def _program_below(problem: Problem, groups: list[ProgramGroup], bias: float) -> tuple[LinearProgram, list[Integers]]:
    """Return the exact program, limited to plans of at most this bias."""
    program, shares = program_of(problem, groups, whole=True)
    _order_twins(program, groups, shares)
    program.row((np.arange(len(program.cost)), np.array(program.cost)), high=bias + _SAME)
    return program, shares


def _least_unused(problem: Problem, groups: list[ProgramGroup], best: CandidatePlan, nodes: int) -> CandidatePlan:
    """Return the plan that leaves least unused among those of this bias."""
    program, shares = _program_below(problem, groups, best.bias)
    program.cost = [0.0] * len(program.cost)
    for group, x in zip(groups, shares, strict=True):
        assert group.sets is not None
        fill = problem.fill[group.sets]
        for variable, unfilled in zip(x, (fill.max() - fill) / problem.dimension, strict=True):
            program.cost[variable] = float(unfilled)
    answer = program.solve(nodes=nodes)
    if answer.values is None:
        return best
    found = _better(problem, best, _chosen(problem, groups, shares, answer.values))
    return replace(found, least_unused=answer.solved and problem.lists_every_set)


def _devices(problem: Problem) -> list[ProgramGroup]:
    """Return one group per device, interchangeable devices next to each other."""
    groups = []
    for device_group in problem.groups:
        sets = problem.pool[device_group.choices]
        for device in device_group.devices:
            weight = float(problem.weights[device])
            alone = replace(device_group, devices=np.array([device]))
            able, forced = np.logical_or.reduce(sets), np.logical_and.reduce(sets)
            groups.append(ProgramGroup(alone, weight, weight, device_group.choices, able, forced))
    return groups


def _order_twins(program: LinearProgram, groups: list[ProgramGroup], shares: list[Integers]) -> None:
    """Require that of two interchangeable devices the second has no earlier set than the first."""
    for (one, x), (other, y) in zip(
        zip(groups, shares, strict=True), zip(groups[1:], shares[1:], strict=True), strict=False
    ):
        if one.sets is other.sets and one.weight == other.weight:
            places = np.arange(x.size) / x.size
            program.row((x, places), (y, -places), high=0)


def _chosen(problem: Problem, groups: list[ProgramGroup], shares: list[Integers], values: Reals) -> Integers:
    chosen = np.empty(len(problem.devices), np.int64)
    for group, x in zip(groups, shares, strict=True):
        assert group.sets is not None
        chosen[group.device_group.devices[0]] = group.sets[int(np.argmax(values[x]))]
    return chosen


def _better(problem: Problem, known: CandidatePlan, chosen: Integers) -> CandidatePlan:
    """Return the better of two plans; the bias of the solver's plan is computed again."""
    bias = bias_of(problem.pool[chosen], problem.weights)
    if bias > known.bias + _SAME:
        return known
    if bias > known.bias - _SAME and problem.unused(chosen) >= problem.unused(known.chosen):
        return known
    return replace(known, chosen=chosen, bias=bias)
