"""A good plan for any fleet, with a proof of how good it is.

It starts from several plans that are good in some cases, and improves each move by move (`search.py`):

    shared     every device trains what most others can train too: best if weak devices cannot cover the model
    spread     each subgroup trains what is covered least so far: best if they can
    the baselines, from both ends and at random

Then it perturbs and improves the best of them a few times.

The proof is the linear program of `relaxation.py`: no plan has a bias below it.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from edgefl.planning.freezing.baselines import random_plan, sequential_plan
from edgefl.planning.freezing.bias import Reals, bias_of
from edgefl.planning.freezing.candidate_sets import MOST_BLOCKS, Integers
from edgefl.planning.freezing.cover import cover_every_block
from edgefl.planning.freezing.problem import CandidatePlan, Problem
from edgefl.planning.freezing.relaxation import lower_bound
from edgefl.planning.freezing.search import improve, sample_choices

__all__ = ["approximate_plan"]

_MOST_TRIED = 1200
"""The number of sets that all groups together try, if they have more; and the least that each tries."""
_LEAST_TRIED = 48
_SMALL = 4
"""Up to this many groups, a bound with two pieces per block is computed too."""
_RANDOM = 3
_PERTURBATIONS = 12
"""How often the best plan is perturbed and improved again."""
_MANY = 8
"""With more groups than this every step takes long, so there are fewer steps."""
_SUBGROUPS = 64
"""The approximate number of subgroups in the whole fleet: the time of a search grows with its square."""
_FEW = 200
_NODES = 20
_SAME = 1e-6
"""Biases that differ by less, in units of d, are equal: a bound is no more exact."""


def approximate_plan(problem: Problem, seed: int) -> CandidatePlan:
    """Return a plan of low bias and a lower bound on the bias of every plan."""
    generator = np.random.default_rng([seed, 2])
    choices = sample_choices(problem, generator, max(_LEAST_TRIED, _MOST_TRIED // len(problem.groups)))
    bound = lower_bound(problem)
    fullest = int(sum(np.sum(problem.budgets[group.devices] - group.most) for group in problem.groups))
    rounds, perturbations = (8, _PERTURBATIONS) if len(problem.groups) <= _MANY else (3, 0)
    best = improve(problem, cover_every_block(problem, _shared(problem)), choices, rounds=rounds)
    for start in itertools.chain(_starts(problem, seed, generator), itertools.repeat(None, perturbations)):
        bias, unused = _key(problem, best)
        if bias <= bound + _SAME and unused <= fullest:
            break  # no plan can be better
        begin = _perturbed(problem, best, choices, generator) if start is None else start
        plan = improve(problem, cover_every_block(problem, begin), choices, rounds=rounds)
        best = min(best, plan, key=lambda plan: _key(problem, plan))
    bias = bias_of(problem.pool[best], problem.weights)
    if bias - bound > _SAME + 0.01 * bias and len(problem.groups) <= _SMALL and len(problem.blocks) <= MOST_BLOCKS:
        bound = max(bound, lower_bound(problem, pieces=2, nodes=_NODES))
    return CandidatePlan(best, bias, min(bias, bound))


def _key(problem: Problem, chosen: Integers) -> tuple[float, int]:
    return round(bias_of(problem.pool[chosen], problem.weights), 10), problem.unused(chosen)


def _starts(problem: Problem, seed: int, generator: np.random.Generator) -> Iterator[Integers]:
    yield _spread(problem, subgroups=max(2, min(len(problem.blocks), _SUBGROUPS // len(problem.groups))))
    yield sequential_plan(problem, from_head=True)
    if len(problem.groups) > _MANY:
        return  # many groups take long, and have many ways to combine anyway
    yield _spread(problem, subgroups=1)
    yield sequential_plan(problem, from_head=False)
    if len(problem.devices) <= _FEW:
        # In a large fleet this has thousands of subgroups, and is no better than `spread`.
        yield random_plan(problem, seed)
    for _ in range(_RANDOM):
        yield _one_set_each(problem, generator)


def _perturbed(problem: Problem, plan: Integers, choices: list[Integers], generator: np.random.Generator) -> Integers:
    """Return the plan with part of one group moved to a random set: two moves may improve what no single move does."""
    number = int(generator.integers(len(problem.groups)))
    devices = problem.groups[number].devices
    perturbed = plan.copy()
    perturbed[devices[int(generator.integers(2)) :: int(generator.integers(1, 4))]] = generator.choice(choices[number])
    return perturbed


def _shared(problem: Problem) -> Integers:
    """From the weakest group on, let each take the set that the others can share most of."""
    potential = np.sum([group.weight * problem.able(group) for group in problem.groups], axis=0)
    chosen = np.empty(len(problem.devices), np.int64)
    coverage = 1e-3 * potential
    for group in sorted(problem.groups, key=lambda group: group.most):
        row = group.choices[int(np.argmax(_mean(problem, group.choices, coverage)))]
        chosen[group.devices] = row
        coverage = coverage + group.weight * problem.pool[row]
    return chosen


def _spread(problem: Problem, *, subgroups: int) -> Integers:
    """From the strongest group on, let this many subgroups of each take the set that is covered least."""
    chosen = np.empty(len(problem.devices), np.int64)
    coverage = np.zeros(len(problem.blocks))
    for group in sorted(problem.groups, key=lambda group: -group.least):
        for subgroup in range(min(subgroups, group.devices.size)):
            devices = group.devices[subgroup::subgroups]
            row = group.choices[int(np.argmin(_mean(problem, group.choices, coverage)))]
            chosen[devices] = row
            coverage = coverage + problem.weights[devices].sum() * problem.pool[row]
    return chosen


def _one_set_each(problem: Problem, generator: np.random.Generator) -> Integers:
    chosen = np.empty(len(problem.devices), np.int64)
    for group in problem.groups:
        chosen[group.devices] = generator.choice(group.choices)
    return chosen


def _mean(problem: Problem, choices: Integers, coverage: Reals) -> Reals:
    """Return the mean coverage of the parameters of each set."""
    mean: Reals = (problem.pool[choices] @ (coverage * problem.sizes)) / problem.fill[choices]
    return mean
