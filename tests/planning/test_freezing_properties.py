"""Properties of freezing plans, on random small fleets whose plans can all be tried."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgefl.errors import MaskError
from edgefl.model_graph import ModelGraph, cost_of
from edgefl.planning import FreezingDevice, PlanningMethod, freezing_blocks, freezing_plan
from edgefl.planning.freezing.approximate import approximate_plan
from edgefl.planning.freezing.bias import bias_of
from edgefl.planning.freezing.candidate_sets import best_sums, every_set
from edgefl.planning.freezing.exact import exact_plan
from edgefl.planning.freezing.problem import CandidatePlan, Problem
from edgefl.planning.freezing.relaxation import lower_bound
from edgefl.planning.freezing.set_costs import SetCosts
from edgefl.values import Budget
from tests.planning.fleets import SmallFleet, blocks, fleet
from tests.random_models import model_graphs
from tests.values.samples import PROFILE

MOST_PLANS = 4000


@st.composite
def small_fleets(draw: st.DrawFn) -> SmallFleet:
    sizes = draw(st.lists(st.integers(1, 12), min_size=2, max_size=5))
    devices = draw(st.integers(1, 4))
    budgets = draw(st.lists(st.integers(1, sum(sizes)), min_size=devices, max_size=devices))
    samples = draw(st.lists(st.integers(1, 5), min_size=devices, max_size=devices))
    tolerance = draw(st.sampled_from([0.0, 0.05, 0.3]))
    budgets[0] = max(budgets[0], max(sizes))
    found = SmallFleet(sizes, budgets, samples, tolerance)
    assume(math.prod(max(1, len(sets)) for sets in found.choices()) <= MOST_PLANS)
    assume(math.isfinite(found.best[0]))
    return found


def check(problem: Problem, found: CandidatePlan, least: float) -> None:
    assert found.bias == pytest.approx(bias_of(problem.pool[found.chosen], problem.weights), abs=1e-9)
    assert found.bias >= least - 1e-9
    assert found.bound <= least + 1e-6
    for group in problem.groups:
        assert np.isin(found.chosen[group.devices], group.choices).all()
        assert (problem.fill[found.chosen[group.devices]] <= problem.budgets[group.devices]).all()


@settings(max_examples=60, deadline=None)
@given(small_fleets())
def test_the_exact_plan_is_the_best_of_all(small: SmallFleet) -> None:
    problem, (least, unused) = small.problem, small.best
    known = approximate_plan(problem, 0)
    check(problem, known, least)
    found = exact_plan(problem, known)
    check(problem, found, least)
    assert found.bias == pytest.approx(least, abs=1e-9)
    assert problem.unused(found.chosen) == unused
    assert found.least_unused


@settings(max_examples=15, deadline=None)
@given(small_fleets())
def test_the_solver_finds_what_trying_all_finds(small: SmallFleet) -> None:
    problem, (least, unused) = small.problem, small.best
    found = exact_plan(problem, approximate_plan(problem, 0), most_plans=0)
    check(problem, found, least)
    assert found.bias == pytest.approx(least, abs=2e-6)
    assert problem.unused(found.chosen) <= unused


@settings(max_examples=40, deadline=None)
@given(small_fleets(), st.integers(1, 3))
def test_the_bound_is_never_above_the_best(small: SmallFleet, pieces: int) -> None:
    assert lower_bound(small.problem, pieces=pieces) <= small.best[0] + 1e-6


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=3, max_size=7),
    st.lists(st.tuples(st.floats(0.2, 1), st.integers(1, 9)), min_size=2, max_size=8),
    st.integers(0, 5),
)
def test_the_planner_is_never_worse_than_chance_order_or_sca(
    sizes: list[int], devices: list[tuple[float, int]], seed: int
) -> None:
    budgets = [max(max(sizes), round(share * sum(sizes))) for share, _ in devices]
    ours = fleet(budgets, [samples for _, samples in devices])
    try:
        best = freezing_plan(blocks(*sizes), ours, seed=seed)
    except MaskError:
        assume(False)
    for method in (PlanningMethod.RANDOM, PlanningMethod.SEQUENTIAL, PlanningMethod.SCA):
        other = freezing_plan(blocks(*sizes), ours, method=method, seed=seed)
        assert best.bias <= other.bias + 1e-6 * best.dimension
        assert best.lower_bound <= other.bias + 1e-6 * best.dimension


@settings(max_examples=30, deadline=None)
@given(model_graphs(), st.data())
def test_costs_of_sets_are_never_below_the_truth(graph: ModelGraph, data: st.DataObject) -> None:
    found = freezing_blocks(graph)
    set_costs = SetCosts.of(graph, found)
    sets = every_set(len(found))
    quantities = set_costs.quantities(sets)
    row = data.draw(st.integers(0, len(sets) - 1))
    layers = [layer for number in np.flatnonzero(sets[row]) for layer in found[number].layers]
    cost = cost_of(graph, None, layers)
    device = FreezingDevice(device_id="x", budget=Budget(round_seconds=1), profile=PROFILE, steps=3)
    use = device.use(cost)
    assert use is not None
    assert quantities[row, 0] >= cost.backward_multiply_adds
    assert quantities[row, 1] >= cost.saved_activations
    assert quantities[row, 2] == cost.trained_parameters
    tight = FreezingDevice(
        device_id="x",
        budget=Budget(round_seconds=use.round_seconds, peak_bytes=use.peak_bytes),
        profile=PROFILE,
        steps=3,
    )
    fitting = set_costs.fitting(tight, quantities)
    for number in np.flatnonzero(fitting):
        layers = [layer for place in np.flatnonzero(sets[number]) for layer in found[place].layers]
        assert tight.fits(cost_of(graph, None, layers))


@given(st.lists(st.integers(1, 60), min_size=1, max_size=9), st.integers(0, 300))
def test_best_sums_are_the_best(sizes: list[int], limit: int) -> None:
    numbers = np.array(sizes)
    found = best_sums(numbers, np.array([limit]))
    assert found is not None
    totals = every_set(len(sizes)) @ numbers
    assert found[0] @ numbers == max([total for total in totals if total <= limit], default=0)
