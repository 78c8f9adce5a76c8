"""Which layers each device trains: the paper's examples, the rules, and what no plan may do."""

import itertools
import random
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from edgefl.errors import MaskError, SchemaError
from edgefl.masks import Mask
from edgefl.model_graph import cost_of
from edgefl.planning import FreezingDevice, PlanningMethod, freezing_blocks, freezing_plan
from edgefl.planning.freezing.bias import bias_of
from edgefl.values import Budget
from examples.networks import cnn4, preresnet18
from tests.planning.fleets import SmallFleet, blocks, fleet, mobilenet_blocks
from tests.values.samples import PROFILE

UNITS = blocks(1, 1, 1, 1)
TABLE_6: dict[tuple[int, ...], Fraction] = {
    (1, 1, 4): Fraction(8, 3),
    (1, 2, 4): Fraction(10, 3),
    (1, 3, 4): Fraction(2),
    (2, 2, 4): Fraction(2),
    (2, 3, 4): Fraction(2),
    (3, 3, 4): Fraction(2),
    (4, 4, 4): Fraction(0),
}
"""Budgets of the three devices in figure 2 (a) to (g), and the bias of the selection that the paper chooses."""

SELECTIONS = {
    "a1": ([1, 1], Fraction(8, 3)),
    "a2": ([1, 2], Fraction(4)),
    "b1": ([1, 1 + 2], Fraction(10, 3)),
    "b2": ([1, 2 + 4], Fraction(4)),
    "c1": ([1, 1 + 2 + 4], Fraction(10, 3)),
    "c2": ([1, 2 + 4 + 8], Fraction(2)),
    "d1": ([1 + 2, 1 + 2], Fraction(8, 3)),
    "d2": ([1 + 2, 2 + 4], Fraction(4)),
    "d3": ([1 + 2, 4 + 8], Fraction(2)),
    "e1": ([1 + 2, 1 + 2 + 4], Fraction(10, 3)),
    "e2": ([1 + 2, 2 + 4 + 8], Fraction(2)),
    "f1": ([7, 7], Fraction(8, 3)),
    "f2": ([7, 2 + 4 + 8], Fraction(2)),
    "g": ([15, 15], Fraction(0)),
}
"""Every row of table 6: what devices 1 and 2 train, as bits, and the bias. Device 3 trains everything."""


@pytest.mark.parametrize("name", SELECTIONS)
def test_every_row_of_table_6_has_the_bias_of_the_paper(name: str) -> None:
    masks, bias = SELECTIONS[name]
    trained = np.array([[mask >> bit & 1 for bit in range(4)] for mask in [*masks, 15]], np.bool_)
    assert 4 * bias_of(trained, np.full(3, 1 / 3)) == pytest.approx(float(bias))


@pytest.mark.parametrize("method", [PlanningMethod.AUTO, PlanningMethod.EXACT, PlanningMethod.APPROXIMATE])
@pytest.mark.parametrize("budgets", TABLE_6)
def test_the_planner_chooses_as_table_6_does(budgets: tuple[int, ...], method: PlanningMethod) -> None:
    plan = freezing_plan(UNITS, fleet(budgets), method=method, tolerance=0)
    assert plan.bias == pytest.approx(float(TABLE_6[budgets]))
    assert plan.unused == 0
    assert plan.lower_bound <= plan.bias + 1e-9
    if method is not PlanningMethod.APPROXIMATE:
        assert plan.gap == pytest.approx(0)


def test_weak_devices_share_a_set_where_they_cannot_cover_and_differ_where_they_can() -> None:
    shared = freezing_plan(UNITS, fleet((1, 1, 4)), tolerance=0).assignments
    assert shared["d00000"].trained == shared["d00001"].trained
    apart = freezing_plan(UNITS, fleet((2, 2, 4)), tolerance=0).assignments
    assert set(apart["d00000"].trained) | set(apart["d00001"].trained) == {f"layer{n}" for n in range(4)}


@pytest.mark.parametrize("strong", [20, 50])
def test_the_authors_set_up_reaches_the_proven_bound(strong: int) -> None:
    for model in (mobilenet_blocks(), freezing_blocks(preresnet18())):
        dimension = sum(block.size for block in model)
        devices = fleet([dimension] * strong + [dimension // 8] * (100 - strong), [450] * 100)
        plan = freezing_plan(model, devices)
        assert plan.bias == pytest.approx((1 - strong / 100) * dimension, rel=1e-5)
        assert plan.gap < 1e-5
        weak = [part for part in plan.assignments.values() if part.parameters < dimension]
        assert all(part.parameters <= dimension // 8 for part in weak)


def test_blocks_are_the_authors() -> None:
    found = freezing_blocks(preresnet18())
    assert len(found) == 10
    assert sum(block.size for block in found) == 11_167_040
    assert "head" not in {layer for block in found for layer in block.layers}
    assert len(mobilenet_blocks()) == 14
    assert sum(block.size for block in mobilenet_blocks()) == 3_206_976


def test_samples_weigh() -> None:
    # Two unit blocks; one device trains both, two train one. The weak ones have 3 and 1 of 8 samples.
    weights = np.array([4, 3, 1]) / 8
    together = bias_of(np.array([[1, 1], [1, 0], [1, 0]], np.bool_), weights)
    apart = bias_of(np.array([[1, 1], [1, 0], [0, 1]], np.bool_), weights)
    assert together == pytest.approx(1 + 4 / 8 - 1)  # S = (8, 4) / 8
    assert apart == pytest.approx(4 / 5 + 3 / 7 + 1 / 5 - 1)  # S = (7, 5) / 8
    plan = freezing_plan(blocks(1, 1), fleet((2, 1, 1), (4, 3, 1)), tolerance=0)
    assert plan.bias == pytest.approx(2 * min(together, apart))


def test_many_equal_devices_are_one_with_all_their_samples() -> None:
    many = freezing_plan(blocks(3, 2, 2), fleet([7, 7, 4, 4], [5, 5, 2, 2]), method=PlanningMethod.EXACT)
    few = freezing_plan(blocks(3, 2, 2), fleet([7, 4], [10, 4]), method=PlanningMethod.EXACT)
    assert many.bias <= few.bias + 1e-9  # the one can be divided, the other cannot


def test_ties_go_to_less_unused_budget() -> None:
    # Alone, a device's bias is 0 only if it trains all; two blocks of 9 and 10 for two devices that can have either.
    plan = freezing_plan(blocks(9, 10), fleet([19, 10], [1, 1]), tolerance=0.2)
    assert plan.assignments["d00001"].blocks == ("b1",)
    assert plan.unused == 0


def test_a_device_leaves_no_more_than_it_must_or_the_tolerance() -> None:
    for tolerance, least in ((0.0, 10), (0.05, 10), (0.3, 7)):
        plan = freezing_plan(blocks(7, 10, 30), fleet([47, 10, 10]), tolerance=tolerance)
        assert all(plan.assignments[name].parameters >= least for name in ("d00001", "d00002"))


def test_the_order_of_devices_changes_nothing() -> None:
    devices = fleet([5, 9, 14, 30, 30, 9], [3, 1, 4, 1, 5, 9])
    plans = []
    for seed in range(3):
        shuffled = random.Random(seed).sample(devices, len(devices))
        plans.append(freezing_plan(blocks(2, 4, 5, 8, 11), shuffled))
    assert plans[0] == plans[1] == plans[2]


def test_a_block_that_no_device_can_train_is_named() -> None:
    with pytest.raises(MaskError, match=r"block 'b1' of 50 parameters.*beyond_budget=True"):
        freezing_plan(blocks(10, 50, 10), fleet([20, 30]))


def test_what_nobody_can_afford_goes_to_the_strongest_if_allowed() -> None:
    plan = freezing_plan(blocks(10, 50, 10), fleet([20, 30]), beyond_budget=True)
    assert "b1" in plan.assignments["d00001"].blocks
    assert plan.assignments["d00001"].unused < 0
    assert plan.assignments["d00000"].unused >= 0
    assert min(plan.coverage.values()) > 0
    assert plan.lower_bound <= plan.bias


def test_too_few_devices_for_all_blocks_are_told_so() -> None:
    with pytest.raises(MaskError, match="cannot train all blocks"):
        freezing_plan(blocks(4, 4, 4), fleet([4, 4]))
    plan = freezing_plan(blocks(4, 4, 4), fleet([4, 4]), beyond_budget=True)
    assert min(plan.coverage.values()) > 0


def test_a_block_that_is_in_no_full_set_is_trained_all_the_same() -> None:
    # The best fill of a budget of 3 is the block of 3; the block of 2 would be left to nobody.
    plan = freezing_plan(blocks(3, 2), fleet([3, 3]), tolerance=0)
    assert {part.blocks for part in plan.assignments.values()} == {("b0",), ("b1",)}


def test_a_device_that_can_train_nothing_is_left_out_and_counts_for_nothing() -> None:
    with_it = freezing_plan(blocks(4, 5), fleet([9, 9, 3]))
    assert with_it.assignments["d00002"].trained == ()
    assert with_it.bias == pytest.approx(0)


def test_fleets_that_cannot_be_are_refused() -> None:
    with pytest.raises(MaskError, match="empty"):
        freezing_plan(UNITS, [])
    with pytest.raises(MaskError, match="the same name"):
        freezing_plan(UNITS, fleet([4]) * 2)
    with pytest.raises(MaskError, match="tolerance"):
        freezing_plan(UNITS, fleet([4]), tolerance=1)
    with pytest.raises(SchemaError, match="no profile"):
        FreezingDevice(device_id="x", budget=Budget(round_seconds=3))
    timed = FreezingDevice(device_id="x", budget=Budget(round_seconds=3), profile=PROFILE)
    with pytest.raises(MaskError, match="model graph"):
        freezing_plan(UNITS, [timed])


def timed_fleet(seconds: list[float], *, peak: int | None = None) -> list[FreezingDevice]:
    return [
        FreezingDevice(
            device_id=f"d{number}",
            budget=Budget(round_seconds=limit, peak_bytes=peak),
            profile=PROFILE,
            steps=10,
            batch=16,
        )
        for number, limit in enumerate(seconds)
    ]


@pytest.mark.parametrize("method", list(PlanningMethod))
def test_no_device_is_over_its_time_by_the_true_prediction(method: PlanningMethod) -> None:
    graph = preresnet18()
    whole = cost_of(graph, None, [layer for block in freezing_blocks(graph) for layer in block.layers])
    most = timed_fleet([1.0])[0].use(whole)
    assert most is not None
    assert most.round_seconds is not None
    idle = timed_fleet([1.0])[0].use(cost_of(graph, None, []))
    assert idle is not None
    assert idle.round_seconds is not None
    span = most.round_seconds - idle.round_seconds
    devices = timed_fleet([idle.round_seconds + share * span for share in (0.2, 0.35, 0.35, 0.6, 1.01)])
    plan = freezing_plan(graph, devices, method=method)
    for device in devices:
        part = plan.assignments[device.device_id]
        assert part.trained
        assert part.use is not None
        assert not device.budget.exceeded_by(part.use)
        assert part.use == device.use(Mask.of(graph, trained=part.trained).cost)
    assert min(plan.coverage.values()) > 0


def test_a_gradient_has_to_be_paid_for_all_the_way() -> None:
    """Time for the last block is not time for the first one, though that is smaller."""
    graph = cnn4()
    found = freezing_blocks(graph)
    costs = [cost_of(graph, None, block.layers) for block in found]
    device = timed_fleet([1.0])[0]
    seconds = [use.round_seconds for cost in costs if (use := device.use(cost)) and use.round_seconds]
    limits = [seconds[-1] * 1.001, max(seconds) * 20]
    plan = freezing_plan(graph, timed_fleet(limits))
    assert found[0].size < found[-1].size
    assert plan.assignments["d0"].blocks == (found[-1].name,)


def test_memory_limits_bind_too() -> None:
    graph = cnn4()
    whole = timed_fleet([1e9])[0].use(cost_of(graph, None, None))
    assert whole is not None
    assert whole.peak_bytes is not None
    tight = timed_fleet([1e9], peak=whole.peak_bytes - 1_000_000)[0]
    loose = FreezingDevice(device_id="loose", budget=Budget())
    plan = freezing_plan(graph, [tight, loose])
    assert 0 < plan.assignments["d0"].parameters < plan.assignments["loose"].parameters
    use = plan.assignments["d0"].use
    assert use is not None
    assert not tight.budget.exceeded_by(use)


def test_large_fleets_of_distinct_budgets_obey_the_rules() -> None:
    generator = np.random.default_rng(0)
    model = blocks(*generator.integers(10, 1000, 9).tolist())
    dimension = sum(block.size for block in model)
    sums = [sum(block.size for block in chosen) for n in range(10) for chosen in itertools.combinations(model, n)]
    budgets = generator.integers(dimension // 5, dimension + 1, 600).tolist()
    plan = freezing_plan(model, fleet(budgets, generator.integers(1, 99, 600).tolist()))
    for part, budget in zip(plan.assignments.values(), budgets, strict=True):
        best = max(total for total in sums if total <= budget)
        assert min(best, 0.95 * budget) - 1e-6 <= part.parameters <= budget
    assert min(plan.coverage.values()) > 0
    assert plan.lower_bound <= plan.bias


def test_many_blocks_are_planned_within_budget_and_with_a_bound() -> None:
    generator = np.random.default_rng(0)
    model = blocks(*generator.integers(10, 1000, 30).tolist())
    dimension = sum(block.size for block in model)
    budgets = [dimension // 8] * 20 + [dimension // 3] * 20 + [dimension] * 10
    plan = freezing_plan(model, fleet(budgets))
    assert all(0.95 * b <= part.parameters <= b for part, b in zip(plan.assignments.values(), budgets, strict=True))
    assert 0 < plan.lower_bound <= plan.bias < freezing_plan(model, fleet(budgets), method="random").bias


def test_the_best_of_a_selection_of_sets_proves_nothing() -> None:
    # Fifteen blocks have more sets than are looked at; which ones, is a matter of the seed.
    model = blocks(51, 42, 43, 26, 53, 12, 36, 44, 51, 33, 25, 22, 28, 31, 44)
    plans = [freezing_plan(model, fleet([541, 216, 135]), method="exact", tolerance=0, seed=seed) for seed in (0, 2)]
    assert max(plan.lower_bound for plan in plans) <= min(plan.bias for plan in plans) + 1e-6


def test_the_best_of_what_neighbours_have_in_common_proves_nothing() -> None:
    # Eighteen budgets are more than there are families, so some devices choose among fewer sets than they may train.
    sizes = (5, 9, 1, 7)
    budgets = [22, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]
    samples = [9, 4, 7, 27, 7, 10, 15, 16, 29, 1, 26, 9, 4, 9, 1, 8, 27, 3]
    better = "0123,2,2,0,02,02,23,1,12,12,03,023,023,012,023,123,123,123"
    plan = better.split(",")
    small = SmallFleet(sizes, budgets, samples, 0.3)
    assert all(frozenset(map(int, own)) in sets for own, sets in zip(plan, small.choices(), strict=True))
    trained = np.array([[str(block) in own for block in range(4)] for own in plan])
    exact = freezing_plan(blocks(*sizes), fleet(budgets, samples), method="exact", tolerance=0.3)
    assert exact.lower_bound <= exact.dimension * bias_of(trained, np.array(samples) / sum(samples))


def test_importing_planning_imports_no_solver() -> None:
    code = "import sys, edgefl.planning; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_devices_of_next_to_no_samples_prove_nothing() -> None:
    model = mobilenet_blocks()
    generator = np.random.default_rng(1)
    shares = generator.choice(np.linspace(0.1, 1, 50), 3000)
    budgets = [int(share * sum(block.size for block in model)) for share in shares]
    equal = freezing_plan(model, fleet(budgets), method=PlanningMethod.SEQUENTIAL)
    for lightest in (1, 30):
        samples = [lightest, *(1000 * generator.integers(50, 1000, 2999)).tolist()]
        light = freezing_plan(model, fleet(budgets, samples), method=PlanningMethod.SEQUENTIAL)
        assert light.lower_bound == pytest.approx(equal.lower_bound, rel=0.05)
