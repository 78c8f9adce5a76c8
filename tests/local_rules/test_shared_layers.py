"""LG-FedAvg on a device: its own layers go on from task to task, the shared ones come and go."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.errors import MaskError
from edgefl.local_rules import Descent, Sgd, SharedLayers, rule_of
from edgefl.local_rules.shared_layers import SharedEnd, layer_units, shared_tensors
from edgefl.masks import Mask, full_mask, gather
from edgefl.model_graph import ModelGraph
from edgefl.values import RuleSettings
from edgefl.wire import Dense
from tests.local_rules.quadratic import Quadratic, assert_resumes, part_of, random_weights, train
from tests.random_models import masked_models

FIRST, LAST = SharedEnd.FIRST, SharedEnd.LAST


def test_a_norm_counts_with_the_layer_before_it(small: ModelGraph) -> None:
    assert layer_units(small) == (("conv1", "norm"), ("conv2",), ("head",))
    assert shared_tensors(small, 1, LAST) == {"head.weight", "head.bias"}
    assert shared_tensors(small, 2, LAST) == {"head.weight", "head.bias", "conv2.weight", "conv2.bias"}
    assert {name.partition(".")[0] for name in shared_tensors(small, 1, FIRST)} == {"conv1", "norm"}
    assert "norm.running_mean" in shared_tensors(small, 1, FIRST)
    assert shared_tensors(small, 3, LAST) == set(small.tensor)


@settings(max_examples=30, deadline=None)
@given(masked_models(), st.integers(1, 3), st.sampled_from(SharedEnd))
def test_a_round_is_gradient_descent_from_own_and_shared_layers(
    model: tuple[ModelGraph, Mask], layers: int, end: SharedEnd
) -> None:
    """Both kinds move at the same time, by the gradient of one loss, and only the shared ones are sent."""
    graph, mask = model
    own, averaged = (gather(mask, random_weights(graph, seed)) for seed in (7, 8))
    shared = shared_tensors(graph, layers, end)
    extras = {f"shared/{name}": averaged[name] for name in shared}
    part = part_of(mask, 1, own=lambda: own, extras=extras)
    rule = SharedLayers(descent=Descent(learning_rate=0.05, momentum=0.5), layers=layers, end=end)
    _, update = train(rule, part, Quadratic(graph), 3)
    weights = {name: averaged[name] if name in shared else own[name] for name in own}
    joined: dict[str, Any] = {**part_of(mask, 1).weights, **weights}
    plain = type(part)(mask, joined, 1)
    _, expected = train(Sgd(descent=rule.descent), plain, Quadratic(graph), 3)
    assert all(np.array_equal(array, expected.weights[name]) for name, array in update.weights.items())
    assert set(update.tensors) == set(mask.trained_tensors) & shared == set(rule.sends(mask))
    for name, payload in update.tensors.items():
        assert isinstance(payload, Dense)
        assert np.array_equal(payload.array, update.weights[name])


HEAD = {"shared/head.weight", "shared/head.bias"}


@pytest.mark.parametrize(
    ("left_out", "change", "message"),
    [
        ("shared/head.bias", {}, "'shared/head.bias' is missing"),
        ("", {"shared/conv2.bias": np.ones(4, np.float32)}, "'shared/conv2.bias' is not shared"),
        ("", {"shared/nothing": np.ones(3, np.float32)}, "'shared/nothing' is not shared"),
        ("", {"other": np.ones(3, np.float32)}, "'other' is not shared"),
        ("", {"shared/head.weight": np.ones((1, 1), np.float32)}, r"float32 of shape \(1, 1\)"),
        ("", {"shared/head.bias": np.full(3, np.nan, np.float32)}, "or not all of it is finite"),
        ("", {"shared/head.bias": np.ones(3)}, "'shared/head.bias' is float64"),
    ],
)
@pytest.mark.parametrize("has_own", [True, False])
def test_shared_layers_that_do_not_fit_are_refused(
    small: ModelGraph, left_out: str, change: dict[str, Any], message: str, has_own: bool
) -> None:
    averaged = random_weights(small, 8)
    extras = {key: averaged[key.removeprefix("shared/")] for key in HEAD - {left_out}} | change
    own = random_weights(small, 7) if has_own else None
    with pytest.raises(MaskError, match=message) as raised:
        SharedLayers(layers=1).begin(part_of(full_mask(small), 1, own=lambda: own, extras=extras))
    assert "head.bias" in raised.value.fix or "shape" in raised.value.fix


@settings(max_examples=20, deadline=None)
@given(masked_models())
def test_the_first_round_begins_with_the_weights_as_sent(model: tuple[ModelGraph, Mask]) -> None:
    part = part_of(model[1], 1)
    _, alone = train(SharedLayers(), part, Quadratic(model[0]), 2)
    _, plain = train(Sgd(), part, Quadratic(model[0]), 2)
    assert all(np.array_equal(array, plain.weights[name]) for name, array in alone.weights.items())


def test_a_proximal_term_pulls_the_shared_layers_to_what_was_averaged(small: ModelGraph) -> None:
    mask = full_mask(small)
    averaged = random_weights(small, 8)
    part = part_of(
        mask, 1, extras={"shared/head.weight": averaged["head.weight"], "shared/head.bias": averaged["head.bias"]}
    )
    rule = SharedLayers(descent=Descent(learning_rate=0.1, proximal=10.0), layers=1)
    _, update = train(rule, part, Quadratic(small), 40)
    goal, at = averaged["head.bias"], update.weights["head.bias"]
    assert np.abs(at - goal).max() < 0.3


@settings(max_examples=20, deadline=None)
@given(masked_models(), st.integers(0, 2))
def test_a_round_goes_on_after_a_crash(model: tuple[ModelGraph, Mask], stop: int) -> None:
    own = gather(model[1], random_weights(model[0], 7))
    part = part_of(model[1], 2, steps=3, own=lambda: own)
    assert_resumes(SharedLayers(descent=Descent(momentum=0.9)), part, Quadratic(model[0]), steps=3, stop=stop)


def test_settings_make_the_rule() -> None:
    made = rule_of(RuleSettings(name="shared_layers", settings={"layers": 3, "end": "first", "learning_rate": 0.3}))
    assert made == SharedLayers(descent=Descent(learning_rate=0.3), layers=3, end=FIRST)
    with pytest.raises(Exception, match="1 or more"):
        rule_of(RuleSettings(name="shared_layers", settings={"layers": 0}))
