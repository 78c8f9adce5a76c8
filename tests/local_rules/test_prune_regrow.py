"""FedSpa on a device: masked training, the exchange of weights, what is sent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.local_rules import Batch, StepResult, TrainingInput
from edgefl.local_rules.descent import Descent
from edgefl.local_rules.erk import erk_mask
from edgefl.local_rules.prune_regrow import PruneRegrow, RegrowMethod, next_held, prune_rate
from edgefl.masks import Mask, Weights, freeze, full_mask
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.wire import Dense, Sparse
from tests.local_rules.quadratic import (
    Quadratic,
    assert_frozen_stay,
    assert_resumes,
    memory_of_a_round,
    nth_batch,
    part_of,
    train,
    wide_model,
)
from tests.random_models import masked_models

WEIGHTS = np.array([[0.5, -0.1, 0], [0.3, 0, -0.7]], np.float32)
HELD = np.array([[1, 1, 0], [1, 0, 1]], np.bool_)


def row(number: int) -> ModelGraph:
    build = GraphBuilder("row", channels=3)
    build.linear("head", build.input, number, bias=False, head=True)
    return build.finish()


def test_the_smallest_weights_go_and_the_largest_gradients_come() -> None:
    gradient = np.array([[9, 0.2, -0.5], [0.1, 0.9, 9]], np.float32)
    # Half of four: 0.1 and 0.3 go. Of what is not held then, 0.9 and 0.5 have the largest gradients.
    assert next_held(WEIGHTS, gradient, HELD, 0.5).astype(int).tolist() == [[1, 0, 1], [0, 1, 1]]


def test_what_just_went_may_come_back() -> None:
    gradient = np.array([[0, 5, 0.1], [0.3, 0.2, 0]], np.float32)
    assert next_held(WEIGHTS, gradient, HELD, 0.5).astype(int).tolist() == [[1, 1, 0], [1, 0, 1]]


def test_the_number_that_goes_is_rounded_up() -> None:
    gradient = np.array([[0, 0, 3], [0, 2, 0]], np.float32)
    assert next_held(WEIGHTS, gradient, HELD, 0.26).astype(int).tolist() == [[1, 0, 1], [0, 1, 1]]
    assert next_held(WEIGHTS, gradient, HELD, 0.25).astype(int).tolist() == [[1, 0, 1], [1, 0, 1]]


def test_the_prune_rate_falls_as_a_cosine_to_zero() -> None:
    assert [prune_rate(0.5, t, 5) for t in range(5)] == pytest.approx(
        [0.5, 0.25 * (1 + np.sqrt(0.5)), 0.25, 0.25 * (1 - np.sqrt(0.5)), 0]
    )
    assert prune_rate(0.5, 4, 5) == 0
    assert prune_rate(0.5, 0, 1) == 0
    assert prune_rate(0.5, 7, 5) == 0


def test_the_update_is_what_the_weights_of_the_old_mask_lost() -> None:
    mask = Mask.of(row(2), held={"head.weight": HELD})
    part = TrainingInput(mask, {"head.weight": WEIGHTS}, seed=0, round=0, rounds=3)
    rule = PruneRegrow(descent=Descent(learning_rate=0.1))
    state, update = train(rule, part, Quadratic(mask.graph), 2)
    payload = update.tensors["head.weight"]
    assert isinstance(payload, Sparse)
    assert payload.indices().tolist() == np.flatnonzero(HELD).tolist()
    assert np.array_equal(payload.to_dense(), np.where(HELD, WEIGHTS - state.weights["head.weight"], 0))
    # The coordinator takes it off (Eq. 4): with one participant that is the trained model.
    assert np.allclose(WEIGHTS - payload.to_dense(), state.weights["head.weight"], atol=1e-7)
    held = update.mask.held["head.weight"]
    assert held.sum() == HELD.sum()
    assert not np.array_equal(held, HELD)
    assert np.array_equal(update.weights["head.weight"], np.where(held, state.weights["head.weight"], 0))
    assert update.metrics["exchanged_weights"] == (held & ~HELD).sum()
    assert update.metrics["density"] == 4 / 6
    assert update.metrics["prune_rate"] == 0.5


def test_the_last_batch_decides_what_comes() -> None:
    mask = Mask.of(row(2), held={"head.weight": HELD})
    part = TrainingInput(mask, {"head.weight": WEIGHTS}, seed=0, round=0, rounds=3)
    rule = PruneRegrow()
    state = rule.begin(part)
    update = rule.finish(part, state, nth_batch(4), Quadratic(mask.graph))
    gradient = Quadratic(mask.graph)(part.weights, nth_batch(4)).gradients["head.weight"]
    assert np.array_equal(update.mask.held["head.weight"], next_held(WEIGHTS, gradient, HELD, 0.5))


def test_a_static_mask_never_changes_and_needs_no_gradient_in_the_end() -> None:
    mask = Mask.of(row(2), held={"head.weight": HELD})
    part = TrainingInput(mask, {"head.weight": WEIGHTS}, seed=0, round=0, rounds=3)
    run = Quadratic(mask.graph)
    _, update = train(PruneRegrow(method=RegrowMethod.STATIC), part, run, 2)
    assert len(run.shapes_seen) == 2
    assert update.mask.digest == mask.digest
    assert update.metrics["exchanged_weights"] == 0


def test_the_last_round_leaves_the_mask_as_it_is() -> None:
    mask = Mask.of(row(2), held={"head.weight": HELD})
    part = TrainingInput(mask, {"head.weight": WEIGHTS}, seed=0, round=2, rounds=3)
    _, update = train(PruneRegrow(), part, Quadratic(mask.graph), 1)
    assert update.mask.digest == mask.digest


def test_dense_tensors_are_sent_whole_and_frozen_masks_stay() -> None:
    build = GraphBuilder("three", channels=6)
    build.linear("head", build.linear("b", build.linear("a", build.input, 8), 8), 3, head=True)
    mask = erk_mask(full_mask(build.finish()), 0.5, seed=1)
    mask = freeze(mask, ["a"])
    part = part_of(mask, 2, round=0, rounds=9)
    state, update = train(PruneRegrow(), part, Quadratic(mask.graph), 2)
    assert set(update.tensors) == {"b.weight", "b.bias", "head.weight", "head.bias"}
    assert isinstance(update.tensors["b.bias"], Dense)
    assert np.array_equal(update.tensors["b.bias"].array, part.weights["b.bias"] - state.weights["b.bias"])
    assert np.array_equal(update.mask.held["a.weight"], mask.held["a.weight"])
    assert not np.array_equal(update.mask.held["b.weight"], mask.held["b.weight"])


@given(masked_models(), st.integers(0, 99), st.integers(0, 4))
def test_the_number_of_held_weights_never_changes(found: tuple[ModelGraph, Mask], seed: int, number: int) -> None:
    graph, mask = found
    part = part_of(mask, seed, round=number, rounds=5)
    rule = PruneRegrow(descent=Descent(learning_rate=0.1, momentum=0.9, weight_decay=0.01))
    state, update = train(rule, part, Quadratic(graph), 2)
    assert {name: where.sum() for name, where in update.mask.held.items()} == {
        name: where.sum() for name, where in mask.held.items()
    }
    assert all(np.array_equal(update.mask.kept[name], mask.kept[name]) for name in mask.kept)
    for name, where in mask.held.items():
        assert not state.weights[name][~where].any()
        assert not update.weights[name][~update.mask.held[name]].any()
    assert_frozen_stay(part, update)


@settings(max_examples=40)
@given(masked_models(), st.integers(0, 99), st.integers(0, 3))
def test_a_resumed_round_ends_like_an_uninterrupted_one(found: tuple[ModelGraph, Mask], seed: int, stop: int) -> None:
    graph, mask = found
    part = part_of(mask, seed, round=1, rounds=5)
    rule = PruneRegrow(descent=Descent(momentum=0.5))
    assert_resumes(rule, part, Quadratic(graph), steps=4, stop=stop)


def test_gradients_of_weights_that_are_not_held_change_nothing() -> None:
    mask = Mask.of(row(2), held={"head.weight": HELD})
    part = TrainingInput(mask, {"head.weight": WEIGHTS}, seed=0, rounds=3)
    quiet, loud = Quadratic(mask.graph), Quadratic(mask.graph)

    def shouting(weights: Weights, batch: Batch) -> StepResult:
        result = loud(weights, batch)
        result.gradients["head.weight"][~HELD] = 1e6
        return result

    rule = PruneRegrow(descent=Descent(momentum=0.9, weight_decay=0.1))
    one, other = rule.begin(part), rule.begin(part)
    for number in range(5):
        rule.step(part, one, nth_batch(number), quiet)
        rule.step(part, other, nth_batch(number), shouting)
    assert np.array_equal(one.weights["head.weight"], other.weights["head.weight"])


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("method", list(RegrowMethod))
def test_the_memory_that_a_planner_is_told_is_what_a_round_takes(momentum: float, method: RegrowMethod) -> None:
    mask = erk_mask(full_mask(wide_model()), 0.5, seed=0)
    rule = PruneRegrow(descent=Descent(momentum=momentum), method=method)
    peak = memory_of_a_round(rule, part_of(mask, 0, rounds=2))
    assert 0.7 * rule.extra_bytes(mask) < peak < 1.05 * rule.extra_bytes(mask)
