"""A good plan for any fleet, with a proof of how good it is.

Plans are made in a few ways that are known to be good somewhere, and each is improved move by move (`search.py`):

    shared     everybody trains what most others can train too: best where weak devices cannot cover the model
    spread     each party trains what is least covered so far: best where they can
    the baselines, from both ends and at random

and the best of them is then disturbed and improved again a few times.

The proof is the linear program of `relaxation.py`: no plan has a bias below it.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from edgefl.planning.freezing.bias import Reals, bias_of
from edgefl.planning.freezing.candidate_plan import CandidatePlan
from edgefl.planning.freezing.candidate_sets import MOST_BLOCKS, Integers
from edgefl.planning.freezing.cover import covered
from edgefl.planning.freezing.problem import Problem
from edgefl.planning.freezing.random_baseline import random_plan
from edgefl.planning.freezing.relaxation import lower_bound
from edgefl.planning.freezing.search import improved, thinned
from edgefl.planning.freezing.sequential_baseline import sequential_plan

__all__ = ["good_plan"]

_MOST_TRIED = 1200
"""Sets that all families together try, if they have more; and what each tries at least."""
_LEAST_TRIED = 48
_SMALL = 4
"""Up to this many families, a bound of two pieces a block is computed too."""
_RANDOM = 3
_KICKS = 12
"""How often the best plan is disturbed and improved again."""
_MANY = 8
"""Families from which on every step takes long, so fewer are taken."""
_PARTIES = 64
"""Parties of the whole fleet, about: what a search takes grows with their square."""
_FEW = 200
_NODES = 20
_SAME = 1e-6
"""Biases that differ by less, in units of d, are equal: a bound is no more exact."""


def good_plan(problem: Problem, seed: int) -> CandidatePlan:
    """Return a plan of low bias and a bound that no plan is below."""
    generator = np.random.default_rng([seed, 2])
    choices = thinned(problem, generator, max(_LEAST_TRIED, _MOST_TRIED // len(problem.families)))
    bound = lower_bound(problem)
    fullest = int(sum(np.sum(problem.budgets[family.devices] - family.most) for family in problem.families))
    rounds, kicks = (8, _KICKS) if len(problem.families) <= _MANY else (3, 0)
    best = improved(problem, covered(problem, _shared(problem)), choices, rounds=rounds)
    for start in itertools.chain(_starts(problem, seed, generator), itertools.repeat(None, kicks)):
        bias, unused = _key(problem, best)
        if bias <= bound + _SAME and unused <= fullest:
            break  # nothing can be better
        begin = _kicked(problem, best, choices, generator) if start is None else start
        plan = improved(problem, covered(problem, begin), choices, rounds=rounds)
        best = min(best, plan, key=lambda plan: _key(problem, plan))
    bias = bias_of(problem.pool[best], problem.weights)
    if bias - bound > _SAME + 0.01 * bias and len(problem.families) <= _SMALL and len(problem.blocks) <= MOST_BLOCKS:
        bound = max(bound, lower_bound(problem, pieces=2, nodes=_NODES))
    return CandidatePlan(best, bias, min(bias, bound))


def _key(problem: Problem, chosen: Integers) -> tuple[float, int]:
    return round(bias_of(problem.pool[chosen], problem.weights), 10), problem.unused(chosen)


def _starts(problem: Problem, seed: int, generator: np.random.Generator) -> Iterator[Integers]:
    yield _spread(problem, parties=max(2, min(len(problem.blocks), _PARTIES // len(problem.families))))
    yield sequential_plan(problem, from_head=True)
    if len(problem.families) > _MANY:
        return  # many families take long, and have many ways to come together anyway
    yield _spread(problem, parties=1)
    yield sequential_plan(problem, from_head=False)
    if len(problem.devices) <= _FEW:
        # In a large fleet this is thousands of parties, and as good as `spread`.
        yield random_plan(problem, seed)
    for _ in range(_RANDOM):
        yield _one_set_each(problem, generator)


def _kicked(problem: Problem, plan: Integers, choices: list[Integers], generator: np.random.Generator) -> Integers:
    """Return the plan with a part of one family at a random set: what no single move improves, two moves may."""
    number = int(generator.integers(len(problem.families)))
    devices = problem.families[number].devices
    kicked = plan.copy()
    kicked[devices[int(generator.integers(2)) :: int(generator.integers(1, 4))]] = generator.choice(choices[number])
    return kicked


def _shared(problem: Problem) -> Integers:
    """From the family with fewest parameters on, take the set that the others can share most of."""
    potential = np.sum([family.weight * problem.able(family) for family in problem.families], axis=0)
    chosen = np.empty(len(problem.devices), np.int64)
    coverage = 1e-3 * potential
    for family in sorted(problem.families, key=lambda family: family.most):
        row = family.choices[int(np.argmax(_mean(problem, family.choices, coverage)))]
        chosen[family.devices] = row
        coverage = coverage + family.weight * problem.pool[row]
    return chosen


def _spread(problem: Problem, *, parties: int) -> Integers:
    """From the strongest family on, let so many parties of each take the set that is least covered."""
    chosen = np.empty(len(problem.devices), np.int64)
    coverage = np.zeros(len(problem.blocks))
    for family in sorted(problem.families, key=lambda family: -family.least):
        for party in range(min(parties, family.devices.size)):
            devices = family.devices[party::parties]
            row = family.choices[int(np.argmin(_mean(problem, family.choices, coverage)))]
            chosen[devices] = row
            coverage = coverage + problem.weights[devices].sum() * problem.pool[row]
    return chosen


def _one_set_each(problem: Problem, generator: np.random.Generator) -> Integers:
    chosen = np.empty(len(problem.devices), np.int64)
    for family in problem.families:
        chosen[family.devices] = generator.choice(family.choices)
    return chosen


def _mean(problem: Problem, choices: Integers, coverage: Reals) -> Reals:
    """Return the mean coverage of the parameters of each set."""
    mean: Reals = (problem.pool[choices] @ (coverage * problem.sizes)) / problem.fill[choices]
    return mean
