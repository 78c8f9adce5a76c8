"""Sub-FedAvg on a device: when it prunes, which weights go, and what it sends."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.local_rules import Batch, Descent, Sgd, StepResult, TrainingInput, Update, WeightPruning, rule_of
from edgefl.masks import Mask, Weights, full_mask
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.values import RuleSettings
from edgefl.wire import Dense
from tests.local_rules.quadratic import Quadratic, assert_resumes, part_of, train
from tests.random_models import masked_models

W = "head.weight"


def row(weights: int = 10) -> ModelGraph:
    build = GraphBuilder("row", channels=weights)
    build.linear("head", build.input, 1, bias=False, head=True)
    return build.finish()


def moving(*places: int) -> Callable[[Weights, Batch], StepResult]:
    """A step of rate 1 adds one to some weights."""

    def run(weights: Weights, batch: Batch) -> StepResult:
        gradient = np.zeros(weights[W].shape, np.float32)
        gradient[0, list(places)] = -1
        return StepResult(0.0, np.ones(1, np.bool_), {W: gradient})

    return run


def a_round(rule: WeightPruning, run: Any, *, held: Any = None, accuracy: Any = lambda weights: 0.9) -> Update:
    """Two passes of two steps, from the weights 1 to 10."""
    graph = row()
    flags = {} if held is None else {W: np.array([held], np.bool_)}
    mask = Mask.of(graph, held=flags)
    start = np.arange(1, 11, dtype=np.float32)[None] * flags.get(W, True)
    part = TrainingInput(mask, {W: start.astype(np.float32)}, 1, steps=4, epoch_steps=2, accuracy=accuracy)
    return train(rule, part, run, 4)[1]


def rule(**changes: Any) -> WeightPruning:
    plain: dict[str, Any] = {"descent": Descent(learning_rate=1.0), "rate": 0.2, "target": 0.5}
    return WeightPruning(**(plain | changes))


def lost(update: Update) -> list[int]:
    return [] if W not in update.mask.held else np.flatnonzero(~update.mask.held[W][0]).tolist()


def test_the_smallest_weights_after_the_last_pass_go() -> None:
    """The first weight grows by 4. After two steps the lowest are 2 and 3 (the first and the second), in the end 2 and
    3 again, but now of the second and third: the masks differ in two of ten places."""
    update = a_round(rule(), moving(0))
    assert lost(update) == [1, 2]
    assert update.metrics["mask_distance"] == pytest.approx(0.2)
    assert update.metrics["density"] == pytest.approx(0.8)
    payload = update.tensors[W]
    assert isinstance(payload, Dense)
    assert payload.array.tolist() == [5, 4, 5, 6, 7, 8, 9, 10]
    assert update.weights[W][0].tolist() == [5, 0, 0, 4, 5, 6, 7, 8, 9, 10]


def test_a_mask_that_training_did_not_change_is_not_pruned() -> None:
    update = a_round(rule(), moving(9))
    assert update.metrics["mask_distance"] == 0
    assert update.mask.held == {}
    assert lost(a_round(rule(distance=0.2), moving(0))) == []
    assert lost(a_round(rule(distance=0.19), moving(0))) == [1, 2]


def test_a_device_prunes_only_if_it_is_accurate_without_the_weights() -> None:
    seen: list[list[float]] = []

    def accuracy(weights: Weights) -> float:
        seen.append(weights[W][0].tolist())
        return 0.5

    assert lost(a_round(rule(), moving(0), accuracy=accuracy)) == []
    assert seen == [[5, 0, 0, 4, 5, 6, 7, 8, 9, 10]]
    assert lost(a_round(rule(accuracy_threshold=0.49), moving(0), accuracy=accuracy)) == [1, 2]
    assert lost(a_round(rule(), moving(0), accuracy=None)) == []


def test_pruning_ends_at_the_target() -> None:
    half = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    assert lost(a_round(rule(), moving(0), held=half)) == [5, 6, 7, 8, 9]
    six = [1, 1, 1, 1, 1, 1, 0, 0, 0, 0]
    update = a_round(rule(descent=Descent(learning_rate=0.4)), moving(0), held=six)
    assert lost(update) == [1, 6, 7, 8, 9]
    assert update.metrics["density"] == pytest.approx(0.5)
    assert rule(target=0.0, rate=1.0).lost(full_mask(row())) == {W: 9}


def test_lost_weights_never_move_and_never_come_back() -> None:
    six = [1, 1, 1, 1, 1, 1, 0, 0, 0, 0]
    update = a_round(rule(rate=0.0), moving(0, 9), held=six)
    assert update.weights[W][0].tolist() == [5, 2, 3, 4, 5, 6, 0, 0, 0, 0]


def test_a_single_pass_takes_its_first_mask_in_the_middle() -> None:
    part = TrainingInput(
        full_mask(row()),
        {W: np.arange(1, 11, dtype=np.float32)[None]},
        1,
        steps=4,
        epoch_steps=4,
        accuracy=lambda weights: 0.9,
    )
    assert lost(train(rule(), part, moving(0), 4)[1]) == [1, 2]  # type: ignore[arg-type]


@settings(max_examples=30, deadline=None)
@given(masked_models(), st.sampled_from([0.0, 0.3, 0.9]))
def test_of_every_tensor_the_lowest_go_as_a_slow_loop_says(model: tuple[ModelGraph, Mask], target: float) -> None:
    graph, mask = model
    made = WeightPruning(rate=0.3, target=target, distance=0.0, accuracy_threshold=0.0)
    part = part_of(mask, 1, steps=4, epoch_steps=1, accuracy=lambda weights: 1.0)
    _, update = train(made, part, Quadratic(graph), 4)
    _, plain = train(Sgd(descent=made.descent), part, Quadratic(graph), 4)
    pruned = update.mask.digest != mask.digest
    for name, count in made.lost(mask).items():
        held = mask.held.get(name, np.ones(mask.shapes[name], np.bool_)).ravel()
        left = update.mask.held.get(name, np.ones(mask.shapes[name], np.bool_)).ravel()
        sizes = np.abs(plain.weights[name]).ravel()
        order = sorted(np.flatnonzero(held), key=lambda place: (sizes[place], place))
        expected = held.copy()
        expected[order[:count]] = False
        assert np.array_equal(left, expected if pruned else held), name
        assert expected.any() == held.any()
    assert update.tensors.keys() == made.sends(update.mask).keys()
    for name, form in made.sends(update.mask).items():
        payload = update.tensors[name]
        assert isinstance(payload, Dense)
        assert payload.array.shape == form.shape


@settings(max_examples=30, deadline=None)
@given(masked_models(), st.integers(0, 3))
def test_a_round_goes_on_after_a_crash(model: tuple[ModelGraph, Mask], stop: int) -> None:
    part = part_of(model[1], 2, steps=4, epoch_steps=2, accuracy=lambda weights: 1.0)
    made = WeightPruning(descent=Descent(momentum=0.9), distance=0.0, target=0.1)
    assert_resumes(made, part, Quadratic(model[0]), steps=4, stop=stop)


def test_settings_make_the_rule() -> None:
    said = {"accuracy_threshold": 0.6, "target": 0.4, "rate": 0.05, "distance": 0.01, "momentum": 0.5}
    made = rule_of(RuleSettings(name="weight_pruning", settings=said))
    expected = WeightPruning(
        descent=Descent(momentum=0.5), accuracy_threshold=0.6, target=0.4, rate=0.05, distance=0.01
    )
    assert made == expected
