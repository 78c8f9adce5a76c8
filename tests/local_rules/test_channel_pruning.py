"""Hermes on a device: what is pruned, when, and how the rest is trained."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.local_rules import TrainingInput
from edgefl.local_rules.channel_pruning import ChannelPruning, PruningScope, prune_mask
from edgefl.local_rules.descent import Descent
from edgefl.local_rules.group_lasso import group_lasso, group_lasso_gradient
from edgefl.local_rules.submodel_channels import prunable_groups
from edgefl.masks import Mask, Weights, freeze, full_mask, gather
from edgefl.model_graph import GraphBuilder, ModelGraph, cost_of
from edgefl.wire import Dense
from examples.networks import cnn4
from tests.local_rules.quadratic import (
    Quadratic,
    assert_frozen_stay,
    assert_resumes,
    memory_of_a_round,
    nth_batch,
    part_of,
    random_weights,
    train,
    wide_model,
)
from tests.random_models import masked_models


def perceptron() -> ModelGraph:
    """Two inputs, four hidden units, two classes: 2*4+4 + 4*2+2 = 22 parameters."""
    build = GraphBuilder("perceptron", channels=2)
    build.linear("head", build.linear("hidden", build.input, 4), 2, head=True)
    return build.finish()


def perceptron_weights() -> dict[str, Any]:
    """Hidden units whose norms are 5, 2, 13 and 2.5, over the two weights in and the two weights out."""
    into = [[3, 0], [0, 0], [5, 0], [1.5, 0]]
    out = [[4, 0, 12, 2], [0, 2, 0, 0]]
    arrays = {"hidden.weight": into, "hidden.bias": [100, 200, 0, 300], "head.weight": out, "head.bias": [0, 0]}
    return {name: np.array(array, np.float32) for name, array in arrays.items()}


def accuracy_of(value: float) -> Any:
    def accuracy(weights: Weights) -> float:
        return value

    return accuracy


def test_the_channels_of_the_lowest_norm_go() -> None:
    mask = full_mask(perceptron())
    assert prune_mask(mask, perceptron_weights(), rate=0.25, target=0.1).kept["hidden"].tolist() == [0, 2, 3]
    assert prune_mask(mask, perceptron_weights(), rate=0.5, target=0.1).kept["hidden"].tolist() == [0, 2]


def test_a_submodel_names_its_channels_as_the_whole_model_does() -> None:
    mask = Mask.of(perceptron(), kept={"hidden": [1, 2, 3]})
    part = gather(mask, perceptron_weights())
    assert prune_mask(mask, part, rate=0.34, target=0.1).kept["hidden"].tolist() == [2, 3]


def test_pruning_stops_at_the_channel_that_reaches_the_target() -> None:
    # A hidden unit has 5 parameters: 22, 17, 12, 7. Half of 22 is 11, so two units leave 12 and the third 7.
    mask = full_mask(perceptron())
    assert prune_mask(mask, perceptron_weights(), rate=0.9, target=0.5).widths["hidden"] == 1
    assert prune_mask(mask, perceptron_weights(), rate=0.9, target=0.7).widths["hidden"] == 2
    assert prune_mask(mask, perceptron_weights(), rate=0.9, target=1.0) is mask


def test_a_share_below_one_channel_still_takes_one() -> None:
    mask = full_mask(perceptron())
    assert prune_mask(mask, perceptron_weights(), rate=0.01, target=0.1).widths["hidden"] == 3
    assert prune_mask(mask, perceptron_weights(), rate=0.0, target=0.1) is mask


def test_the_model_scope_compares_groups_by_the_mean_of_their_squares() -> None:
    build = GraphBuilder("deep", channels=10)
    x = build.linear("b", build.linear("a", build.input, 4, bias=False), 4, bias=False)
    build.linear("head", x, 2, bias=False, head=True)
    mask = full_mask(build.finish())
    weights = {tensor.name: np.ones(tensor.shape, np.float32) for tensor in mask.graph.tensors}
    weights["a.weight"] *= 0.9
    # A unit of a has the squares 10 * 0.81 + 4 over 14 weights, a unit of b 4 + 2 over 6: more in all, less each.
    model = prune_mask(mask, weights, rate=0.3, target=0.01, scope=PruningScope.MODEL)
    assert (model.widths["a"], model.widths["b"]) == (2, 4)
    group = prune_mask(mask, weights, rate=0.3, target=0.01)
    assert (group.widths["a"], group.widths["b"]) == (3, 3)


def test_running_statistics_of_trained_norms_follow_and_those_of_frozen_ones_stay() -> None:
    build = GraphBuilder("normed", channels=1, positions=4)
    x = build.norm("n1", build.conv("a", build.input, 3, kernel=1, positions=4), statistics=True)
    x = build.norm("n2", build.conv("b", x, 3, kernel=1, positions=4), statistics=True)
    build.linear("head", build.flatten(build.pool(x, positions=1)), 2, head=True)
    part = part_of(freeze(full_mask(build.finish()), ["n1"]), 0)
    _, update = train(ChannelPruning(), part, Quadratic(part.mask.graph), 2)
    assert np.array_equal(update.weights["n1.running_mean"], part.weights["n1.running_mean"])
    assert np.allclose(update.weights["n2.running_mean"], part.weights["n2.running_mean"] + 1 + 2)
    assert {"n2.running_mean", "n2.running_var"} <= set(update.tensors)


@pytest.mark.parametrize(("accuracy", "left"), [(0.5, 4), (0.51, 3), (None, 4)])
def test_a_device_prunes_only_when_it_is_accurate_enough(accuracy: float | None, left: int) -> None:
    part = TrainingInput(
        full_mask(perceptron()),
        perceptron_weights(),
        seed=1,
        accuracy=None if accuracy is None else accuracy_of(accuracy),
    )
    state = ChannelPruning(rate=0.25).begin(part)
    assert state.mask.widths["hidden"] == left
    assert state.weights["hidden.weight"].shape == (left, 2)
    assert state.weights["head.weight"].shape == (2, left)


def test_the_engine_gets_the_pruned_size_and_the_update_names_the_new_mask() -> None:
    part = TrainingInput(full_mask(perceptron()), perceptron_weights(), seed=1, accuracy=accuracy_of(0.9))
    run = Quadratic(part.mask.graph)
    rule = ChannelPruning(rate=0.25, lasso=0.001)
    _, update = train(rule, part, run, 3)
    assert {seen["hidden.weight"] for seen in run.shapes_seen} == {(3, 2)}
    assert update.mask.kept["hidden"].tolist() == [0, 2, 3]
    assert {name: payload.shape for name, payload in update.tensors.items()} == update.mask.shapes
    assert all(isinstance(payload, Dense) for payload in update.tensors.values())
    assert update.metrics["pruned_channels"] == 1
    assert update.metrics["kept_fraction"] == 17 / 22
    assert update.metrics["accuracy_before_pruning"] == 0.9
    assert update.metrics["lasso_coefficient"] == 0.001
    assert part.weights["hidden.weight"].shape == (4, 2)


def test_a_device_without_validation_data_trains_all_the_same() -> None:
    part = TrainingInput(full_mask(perceptron()), perceptron_weights(), seed=1)
    _, update = train(ChannelPruning(), part, Quadratic(part.mask.graph), 1)
    assert "accuracy_before_pruning" not in update.metrics
    assert not np.array_equal(update.weights["hidden.weight"], part.weights["hidden.weight"])


def test_the_penalty_is_the_sum_of_norms_of_rows_and_columns() -> None:
    mask = full_mask(perceptron())
    weights = {"hidden.weight": np.array([[3, 4], [0, 0], [0, 0], [0, 0]], np.float32)}
    assert group_lasso(mask, weights, ("hidden.weight",)) == 5 + (3 + 4)
    gradient = group_lasso_gradient(mask, "hidden.weight", weights["hidden.weight"])
    assert np.allclose(gradient, np.array([[3 / 5 + 1, 4 / 5 + 1], [0, 0], [0, 0], [0, 0]]))


def test_columns_of_a_flattened_channel_are_one_group_of_the_penalty() -> None:
    build = GraphBuilder("flat", channels=1, positions=4)
    x = build.flatten(build.conv("a", build.input, 2, kernel=1, positions=2))
    build.linear("head", x, 1, head=True)
    mask = full_mask(build.finish())
    weights = {"head.weight": np.array([[3, 4, 0, 2]], np.float32)}
    assert group_lasso(mask, weights, ("head.weight",)) == pytest.approx(np.sqrt(29) + 5 + 2)


@given(masked_models(), st.integers(0, 99), st.sampled_from(list(PruningScope)), st.floats(0.05, 1), st.floats(0.01, 1))
def test_masks_only_shrink_and_end_at_the_target(
    found: tuple[ModelGraph, Mask], seed: int, scope: PruningScope, rate: float, target: float
) -> None:
    graph, mask = found
    part = part_of(mask, seed, accuracy=accuracy_of(1.0))
    rule = ChannelPruning(rate=rate, target=target, scope=scope)
    state, update = train(rule, part, Quadratic(graph), 1)
    for group in graph.groups:
        assert set(update.mask.kept[group.name]) <= set(mask.kept[group.name])
    assert update.mask.trained == mask.trained
    bound = target * graph.parameters
    cut = [g for g in prunable_groups(mask) if update.mask.widths[g.name] < mask.widths[g.name]]
    if cut and not mask.held:
        wider = [{**update.mask.widths, g.name: update.mask.widths[g.name] + g.multiple_of} for g in cut]
        # Giving back the channels that went last brings the model above the target again.
        assert max(cost_of(graph, widths).parameters for widths in wider) > bound
    can_shrink = any(mask.widths[g.name] > g.multiple_of for g in prunable_groups(mask))
    assert bool(cut) == (can_shrink and mask.cost.parameters > bound)
    assert_frozen_stay(part, update)
    assert all(state.weights[name].shape == shape for name, shape in update.mask.shapes.items())


@given(masked_models(), st.integers(0, 99))
def test_pruned_weights_are_those_of_the_model_at_the_kept_channels(found: tuple[ModelGraph, Mask], seed: int) -> None:
    graph, mask = found
    part = part_of(mask, seed, accuracy=accuracy_of(1.0))
    state = ChannelPruning(rate=0.5, target=0.01).begin(part)
    expected = gather(state.mask, random_weights(graph, seed))
    assert all(np.array_equal(state.weights[name], expected[name]) for name in graph.tensor)


@settings(max_examples=40)
@given(masked_models(), st.integers(0, 99), st.integers(0, 3))
def test_a_resumed_round_ends_like_an_uninterrupted_one(found: tuple[ModelGraph, Mask], seed: int, stop: int) -> None:
    graph, mask = found
    rule = ChannelPruning(descent=Descent(learning_rate=0.05, momentum=0.9, proximal=0.1), lasso=0.01)
    part = part_of(mask, seed, accuracy=accuracy_of(0.8))
    assert_resumes(rule, part, Quadratic(graph), steps=4, stop=stop)


def test_the_proximal_term_pulls_to_what_was_sent_of_the_channels_that_are_left() -> None:
    part = TrainingInput(full_mask(perceptron()), perceptron_weights(), seed=1, accuracy=accuracy_of(0.9))
    rule = ChannelPruning(descent=Descent(learning_rate=1.0, proximal=0.5), rate=0.25, lasso=0.0)
    run = Quadratic(part.mask.graph, trained=("hidden.bias",))
    state = rule.begin(part)
    state.weights["hidden.bias"] += 2
    wave = np.sin(np.arange(3, dtype=np.float32) + 1)
    expected = state.weights["hidden.bias"] - (state.weights["hidden.bias"] - wave) - 0.5 * 2
    rule.step(part, state, nth_batch(0), run)
    assert np.allclose(state.weights["hidden.bias"], expected, atol=1e-5)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("lasso", [0.0, 1e-4])
def test_the_memory_that_a_planner_is_told_is_what_a_round_takes(momentum: float, lasso: float) -> None:
    mask = full_mask(wide_model())
    rule = ChannelPruning(descent=Descent(momentum=momentum), lasso=lasso)
    peak = memory_of_a_round(rule, part_of(mask, 0, accuracy=accuracy_of(0.0)))
    assert 0.7 * rule.extra_bytes(mask) < peak < 1.05 * rule.extra_bytes(mask)


def test_wide_groups_keep_a_multiple_and_narrow_ones_what_their_norm_allows() -> None:
    graph = cnn4()  # 32, 64, 128 and 256 channels
    weights = {tensor.name: np.random.default_rng(1).random(tensor.shape, np.float32) for tensor in graph.tensors}
    mask = full_mask(graph)
    for _ in range(4):
        mask = prune_mask(mask, gather(mask, weights), rate=0.2, target=0.3, multiple=16)
    assert all(mask.widths[name] % 16 == 0 for name in ("conv2", "conv3", "conv4"))
    assert mask.widths["conv1"] % 16, "32 channels are fewer than four steps of 16: they are cut one by one"
    assert mask.cost.parameters < 0.6 * graph.parameters
