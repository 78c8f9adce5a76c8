"""FedSpa with channels on a device: the lowest channels go, drawn ones come, and the cost stays."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.local_rules import ChannelRegrow, Descent, TrainingInput, rule_of
from edgefl.local_rules.prune_regrow import RegrowMethod, draw_channels, exchange_channels
from edgefl.local_rules.submodel_channels import prunable_groups
from edgefl.masks import Mask, full_mask, gather
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.values import RuleSettings, settings_from
from edgefl.wire import Dense
from tests.local_rules.quadratic import Quadratic, assert_resumes, part_of, random_weights, train
from tests.random_models import masked_models


def perceptron(units: int = 8, *, norm_groups: int = 1) -> ModelGraph:
    """Two inputs, hidden units, two classes; no biases."""
    build = GraphBuilder("perceptron", channels=2)
    x = build.linear("hidden", build.input, units, bias=False)
    if norm_groups > 1:
        x = build.norm("norm", x, groups=norm_groups)
    build.linear("head", x, 2, bias=False, head=True)
    return build.finish()


def sized(sizes: list[float]) -> dict[str, Any]:
    """Weights whose hidden units have the given sizes."""
    column = np.array(sizes, np.float32)[:, None]
    return {"hidden.weight": np.repeat(column, 2, axis=1), "head.weight": np.repeat(column.T, 2, axis=0)}


def test_the_lowest_channels_go_and_others_come() -> None:
    mask = Mask.of(perceptron(), kept={"hidden": [1, 2, 4, 7]})
    part = gather(mask, sized([9, 3, 1, 9, 4, 9, 9, 2]))
    kept = exchange_channels(mask, part, 0.5, seed=5).kept["hidden"].tolist()
    # 2 and 7 are the smallest. What comes is none of the four.
    assert len(kept) == 4
    assert {1, 4} < set(kept)
    assert set(kept) - {1, 4} < {0, 3, 5, 6}


def test_the_number_that_goes_is_rounded_up_to_what_the_norm_allows() -> None:
    graph = perceptron(16, norm_groups=2)
    mask = Mask.of(graph, kept={"hidden": range(8)})
    for rate, moved in ((0.05, 2), (0.25, 2), (0.26, 4), (1.0, 8)):
        found = exchange_channels(mask, part_of(mask, 0).weights, rate, seed=1)
        assert np.setdiff1d(found.kept["hidden"], mask.kept["hidden"]).size == moved


def test_where_few_channels_are_absent_few_are_exchanged() -> None:
    graph = perceptron()
    mask = Mask.of(graph, kept={"hidden": range(7)})
    found = exchange_channels(mask, part_of(mask, 0).weights, 0.9, seed=1)
    assert np.setdiff1d(found.kept["hidden"], mask.kept["hidden"]).tolist() == [7]
    whole = full_mask(graph)
    assert exchange_channels(whole, random_weights(graph, 0), 0.9, seed=1).digest == whole.digest


def test_draws_are_even_and_follow_the_seed() -> None:
    group = perceptron().group["hidden"]
    draws = [tuple(draw_channels(group, 2, seed).tolist()) for seed in range(2000)]
    counts = np.bincount(np.array(draws).ravel(), minlength=8)
    assert abs(counts - 500).max() < 100
    assert draws[:5] == [tuple(draw_channels(group, 2, seed).tolist()) for seed in range(5)]
    assert {tuple(draw_channels(group, 1, seed, np.array([3, 5])).tolist()) for seed in range(20)} == {(3,), (5,)}


def test_the_update_is_what_the_old_channels_lost_and_new_ones_are_zero() -> None:
    mask = Mask.of(perceptron(), kept={"hidden": [1, 2, 4, 7]})
    part = TrainingInput(mask, gather(mask, sized([9, 3, 1, 9, 4, 9, 9, 2])), seed=5, round=0, rounds=9)
    run = Quadratic(mask.graph)
    state, update = train(ChannelRegrow(descent=Descent(learning_rate=0.01)), part, run, 2)
    for name, payload in update.tensors.items():
        assert isinstance(payload, Dense)
        assert np.array_equal(payload.array, part.weights[name] - state.weights[name])
    assert len(run.shapes_seen) == 2  # no gradient is asked for in the end
    for place, unit in enumerate(update.mask.kept["hidden"]):
        stayed = unit in mask.kept["hidden"]
        row = state.weights["hidden.weight"][mask.kept["hidden"] == unit] if stayed else np.zeros((1, 2))
        assert np.array_equal(update.weights["hidden.weight"][[place]], row)
        column = state.weights["head.weight"][:, mask.kept["hidden"] == unit] if stayed else np.zeros((2, 1))
        assert np.array_equal(update.weights["head.weight"][:, [place]], column)
    assert update.metrics["exchanged_channels"] == 2
    assert update.metrics["prune_rate"] == 0.5
    assert update.metrics["density"] == 0.5


@pytest.mark.parametrize(("method", "number"), [(RegrowMethod.STATIC, 0), (RegrowMethod.DYNAMIC, 4)])
def test_a_static_mask_and_that_of_the_last_round_stay(method: RegrowMethod, number: int) -> None:
    mask = Mask.of(perceptron(), kept={"hidden": [1, 2, 4, 7]})
    part = part_of(mask, 0, round=number, rounds=5)
    state, update = train(ChannelRegrow(method=method), part, Quadratic(mask.graph), 1)
    assert update.mask is mask
    assert all(np.array_equal(update.weights[name], state.weights[name]) for name in mask.shapes)


@given(masked_models(), st.integers(0, 99), st.integers(0, 4))
def test_every_group_keeps_its_width(found: tuple[ModelGraph, Mask], seed: int, number: int) -> None:
    graph, mask = found
    part = part_of(mask, seed, round=number, rounds=5)
    state, update = train(ChannelRegrow(), part, Quadratic(graph), 2)
    assert update.mask.widths == mask.widths
    assert update.mask.trained == mask.trained
    if not mask.held:
        assert update.mask.cost == mask.cost
    whole = {t.name: np.zeros(t.shape, np.float32) for t in graph.tensors}
    for name, array in state.weights.items():
        whole[name][mask.index(name)] = array
    expected = gather(update.mask, whole)
    assert all(np.array_equal(update.weights[name], expected[name]) for name in graph.tensor)
    for group in prunable_groups(mask):
        came = np.setdiff1d(update.mask.kept[group.name], mask.kept[group.name])
        gone = np.setdiff1d(mask.kept[group.name], update.mask.kept[group.name])
        assert came.size == gone.size
        assert came.size % group.multiple_of == 0


@settings(max_examples=40)
@given(masked_models(), st.integers(0, 99), st.integers(0, 3))
def test_a_resumed_round_ends_like_an_uninterrupted_one(found: tuple[ModelGraph, Mask], seed: int, stop: int) -> None:
    rule = ChannelRegrow(descent=Descent(momentum=0.5))
    assert_resumes(rule, part_of(found[1], seed, round=1, rounds=5), Quadratic(found[0]), steps=4, stop=stop)


def test_settings_make_the_same_rule_on_the_device() -> None:
    rule = ChannelRegrow(method=RegrowMethod.STATIC, initial_rate=0.25)
    assert rule_of(RuleSettings(name="channel_regrow", settings=settings_from(rule))) == rule
