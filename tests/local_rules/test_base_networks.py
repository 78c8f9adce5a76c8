"""Split-Mix on a device: which entries each network has, against networks that are trained alone, and what is sent."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.errors import MaskError
from edgefl.local_rules import BaseNetworks, Batch, Descent, Sgd, TrainingInput, mean_logits, networks_of
from edgefl.local_rules.base_networks import base_networks, joined_networks, only_networks
from edgefl.local_rules.submodel_channels import narrow
from edgefl.masks import freeze, full_mask, gather, leading_channels
from edgefl.model_graph import GraphBuilder, ModelGraph, TensorRole
from edgefl.wire import Dense
from tests.local_rules.quadratic import (
    Quadratic,
    assert_frozen_stay,
    assert_resumes,
    assert_same,
    part_of,
    random_weights,
    train,
)
from tests.masks.test_slicing import held_coordinates, kept_coordinates
from tests.random_models import model_graphs

MOVING = Descent(learning_rate=0.1, momentum=0.9, weight_decay=0.01)


def recurrent() -> ModelGraph:
    """A flatten, an LSTM's stacked gates, a norm in two groups with statistics: channels that do not lie in a row."""
    build = GraphBuilder("recurrent", channels=2, positions=3)
    x = build.lstm("lstm", build.input, 5)
    x = build.norm("norm", build.conv("conv", x, 9, kernel=1, positions=3), groups=1, statistics=True)
    build.linear("head", build.flatten(x), 3, head=True)
    return build.finish()


def shared(graph: ModelGraph) -> set[str]:
    """The tensors that no channel group cuts."""
    return {name for name in graph.tensor if not any(group.fixed is None for group, _ in graph.spans_of.get(name, ()))}


def possible(graph: ModelGraph, of: int) -> bool:
    return all(group.fixed is not None or group.width // of >= group.multiple_of for group in graph.groups)


def test_two_networks_of_a_layer_have_the_blocks_on_its_diagonal() -> None:
    build = GraphBuilder("small", channels=3)
    build.linear("head", build.linear("b", build.linear("a", build.input, 4), 5), 2, head=True)
    both = joined_networks(build.finish(), [0, 1], 2)
    assert both.kept["a"].tolist() == [0, 1, 2, 3]
    assert both.kept["b"].tolist() == [0, 1, 2, 3]  # the fifth is in no network
    assert both.held["b.weight"].astype(int).tolist() == [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    assert set(both.held) == {"b.weight"}
    assert [network.kept["b"].tolist() for network in base_networks(both, 2)] == [[0, 1], [2, 3]]


@given(model_graphs(), st.integers(1, 4), st.data())
def test_networks_share_no_entry_but_those_without_channels(graph: ModelGraph, of: int, data: st.DataObject) -> None:
    if not possible(graph, of):
        with pytest.raises(MaskError, match=f"too few for {of} networks"):
            joined_networks(graph, [0], of)
        return
    numbers = data.draw(st.sets(st.integers(0, of - 1), min_size=1))
    mask = joined_networks(graph, numbers, of)
    networks = base_networks(mask, of)
    assert [network.digest for network in networks] == [joined_networks(graph, [n], of).digest for n in sorted(numbers)]
    for name in graph.tensor:
        entries = [set(kept_coordinates(network, name)) for network in networks]
        assert set().union(*entries) == set(held_coordinates(mask, name))
        common = set.intersection(*entries) if len(entries) > 1 else set()
        assert not common or name in shared(graph) or any(group.fixed for group, _ in graph.spans_of[name])


def test_without_what_is_in_no_network_a_mask_is_that_of_its_networks() -> None:
    graph = recurrent()
    frozen = freeze(full_mask(graph), ["lstm"])
    assert only_networks(full_mask(graph), 3).digest == joined_networks(graph, range(3), 3).digest
    assert only_networks(frozen, 3).digest == freeze(joined_networks(graph, range(3), 3), ["lstm"]).digest
    assert only_networks(leading_channels(graph, 0.5), 3).digest == joined_networks(graph, [0], 3).digest
    narrow_one = leading_channels(graph, 0.2)
    assert only_networks(narrow_one, 2) is narrow_one


@pytest.mark.parametrize("numbers", [[0, 1, 2], [2, 0], [1]])
def test_each_network_moves_as_if_it_were_trained_alone(numbers: list[int]) -> None:
    graph = recurrent()
    mask = joined_networks(graph, numbers, 3)
    part = part_of(mask, 5, steps=4)
    _, update = train(BaseNetworks(descent=MOVING, networks=3), part, Quadratic(graph), 4)
    alone = []
    for network in base_networks(mask, 3):
        own = TrainingInput(network, narrow(mask, network, part.weights), 5, steps=4)
        alone.append(train(Sgd(descent=MOVING), own, Quadratic(graph), 4)[1].weights)
    for network, expected in zip(base_networks(mask, 3), alone, strict=True):
        found = narrow(mask, network, update.weights)
        for name in set(graph.tensor) - shared(graph):
            assert np.allclose(found[name], expected[name], atol=1e-6), name
    for name in shared(graph):  # the mean of gradients that are linear in the weights
        assert np.allclose(update.weights[name], np.mean([one[name] for one in alone], axis=0), atol=1e-6), name


def test_what_is_sent_has_no_zeros_between_the_networks() -> None:
    graph = recurrent()
    mask = joined_networks(graph, [0, 2], 3)
    rule = BaseNetworks(descent=MOVING, networks=3)
    _, update = train(rule, part_of(mask, 6), Quadratic(graph), 2)
    for name, form in rule.sends(mask).items():
        payload = update.tensors[name]
        assert isinstance(payload, Dense)
        assert payload.shape == form.shape
        held = mask.held.get(name)
        expected = update.weights[name] if held is None else update.weights[name][held]
        assert np.array_equal(payload.array, expected)
        assert held is None or not update.weights[name][~held].any()
    assert sum(payload.array.size for payload in update.tensors.values() if isinstance(payload, Dense)) == sum(
        len(held_coordinates(mask, name)) for name in mask.trained_tensors
    )


def test_loss_and_correctness_are_those_of_all_networks() -> None:
    graph = recurrent()
    mask = joined_networks(graph, range(3), 3)
    part = part_of(mask, 7)
    quadratic, losses = Quadratic(graph), []

    def run(weights: Any, batch: Batch) -> Any:
        result = quadratic(weights, batch)
        losses.append(result.loss)
        flags = np.array([len(losses) > 2, len(losses) > 1])  # right in one network, and in two
        return type(result)(result.loss, flags, result.gradients, result.statistics)

    rule = BaseNetworks(networks=3)
    batch = Batch(np.array([1, 2], np.float32), np.array([0, 0]))
    found = rule.step(part, rule.begin(part), batch, run)
    assert found.loss == pytest.approx(np.mean(losses))
    assert found.correct.tolist() == [False, True]


def test_statistics_of_a_network_are_its_own() -> None:
    graph = recurrent()
    (name, *_) = [t.name for t in graph.tensors if t.role is TensorRole.STATISTIC and t.name.endswith("running_mean")]
    part = part_of(joined_networks(graph, [0, 1], 3), 8)
    _, update = train(BaseNetworks(networks=3), part, Quadratic(graph), 1)
    assert np.allclose(update.weights[name], part.weights[name] + 1)


@given(st.integers(0, 4))
def test_a_crash_changes_nothing(stop: int) -> None:
    graph = recurrent()
    rule, part = BaseNetworks(descent=MOVING, networks=3), part_of(joined_networks(graph, [0, 2], 3), 3, steps=5)
    assert_resumes(rule, part, Quadratic(graph), steps=5, stop=stop)


def test_a_mask_without_networks_is_gradient_descent() -> None:
    graph = recurrent()
    mask = leading_channels(graph, 0.2)
    part = part_of(mask, 2, steps=3)
    found = train(BaseNetworks(descent=MOVING, networks=2), part, Quadratic(graph), 3)[1]
    assert_same(found, train(Sgd(descent=MOVING), part, Quadratic(graph), 3)[1])


def test_frozen_layers_stay_and_are_not_sent() -> None:
    graph = recurrent()
    part = part_of(freeze(joined_networks(graph, [0, 1], 3), ["lstm"]), 4)
    _, update = train(BaseNetworks(networks=3), part, Quadratic(graph), 4)
    assert_frozen_stay(part, update)


def test_logits_are_averaged_over_the_networks_of_the_rule_alone() -> None:
    graph = recurrent()
    weights = random_weights(graph, 1)
    mask = joined_networks(graph, [0, 1], 3)
    networks = [gather(network, weights) for network in networks_of(BaseNetworks(networks=3), mask)]
    assert len(networks) == 2
    found = mean_logits(lambda one, x: one["head.weight"][:, :1] * x, networks, np.full(1, 3, np.float32))
    assert np.allclose(found, 3 * (networks[0]["head.weight"][:, :1] + networks[1]["head.weight"][:, :1]) / 2)
    assert networks_of(Sgd(), mask) == (mask,)


def test_too_many_networks_are_refused_by_the_name_of_the_group() -> None:
    message = "channel group 'lstm' has 5 channels, too few for 6 networks of at least 1"
    with pytest.raises(MaskError, match=re.escape(message)):
        joined_networks(recurrent(), [0], 6)


def test_a_model_without_channels_to_divide_is_one_network_whatever_a_plan_says() -> None:
    build = GraphBuilder("linear", channels=3)
    build.linear("head", build.input, 2, head=True)
    graph = build.finish()
    rule, part = BaseNetworks(descent=MOVING, networks=2**53 - 1), part_of(full_mask(graph), 2, steps=3)
    assert networks_of(rule, part.mask) == (part.mask,)
    assert_same(train(rule, part, Quadratic(graph), 3)[1], train(Sgd(descent=MOVING), part, Quadratic(graph), 3)[1])


@pytest.mark.parametrize("of", [6, 2**53 - 1])
def test_a_plan_with_more_networks_than_channels_is_refused(of: int) -> None:
    with pytest.raises(MaskError, match=f"channel group 'lstm' has 5 channels, too few for {of} networks"):
        networks_of(BaseNetworks(networks=of), full_mask(recurrent()))
