"""Sub-FedAvg: its average over those that still hold a weight, masks that shrink to the target, and what is refused."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.errors import MaskError, WireFormatError
from edgefl.local_rules import Descent, WeightPruning, rule_of
from edgefl.masks import BoolArray, Mask, freeze, full_mask, leading_channels
from edgefl.model_graph import ModelGraph
from edgefl.strategies import ClientUpdate, Model, SubFedAvg, strategy_of
from edgefl.wire import Dense, Payload
from tests.masks.test_slicing import held_coordinates
from tests.random_models import masks, model_graphs
from tests.strategies.rounds import ROUND_CONTEXT, random_weights
from tests.strategies.simulated import a_round, device, round_context
from tests.strategies.test_equations_by_hand import W, constant, row, two_layers
from tests.strategies.test_fedavg import GRAPH, MODEL
from tests.values.samples import RESULT

SURE: dict[str, Any] = {"accuracy_threshold": 0.0, "mask_distance": 0.0, "learning_rate": 0.1}


def sent(planned: Mask, left: Mask | None, new: Any, model: Model, *, samples: int = 10) -> ClientUpdate:
    """What a device sends whose remaining weights have these new values, given at the size of the whole model."""
    mask, tensors = left or planned, dict[str, Payload]()
    for name in mask.trained_tensors:
        part = new[name][mask.index(name)]
        tensors[name] = Dense(part[mask.held[name]] if name in mask.held else part)
    rule, result = strategy_of("sub_fedavg", {}).uplink.rule, dataclasses.replace(RESULT, samples=samples)  # type: ignore[attr-defined]
    return ClientUpdate("d", planned, rule, 1, model.weights, result, tensors, next_mask=left)


def holding(graph: ModelGraph, *flags: int) -> Mask:
    return Mask.of(graph, held={W: np.array([flags], np.bool_)})


def test_every_weight_is_the_mean_of_those_that_still_hold_it() -> None:
    """Three devices from 10: one pruned its second weight, one its third, one began without the last two and keeps two.
    They bring 1, 4 and 7; the last weight is held by the first two. Samples do not count."""
    graph = row(4)
    model = Model(graph, constant(graph, 10))
    full = full_mask(graph)
    made = [
        sent(full, holding(graph, 1, 0, 1, 1), constant(graph, 1), model, samples=900),
        sent(full, holding(graph, 1, 1, 0, 1), constant(graph, 4), model),
        sent(holding(graph, 1, 1, 0, 0), None, constant(graph, 7), model),
    ]
    found = strategy_of("sub_fedavg", {}).combine(model, made, ROUND_CONTEXT)
    assert found.weights[W].ravel().tolist() == [4, 5.5, 1, 2.5]


def test_a_weight_that_nobody_holds_keeps_its_value() -> None:
    graph = row(4)
    model = Model(graph, constant(graph, 10))
    made = [sent(full_mask(graph), holding(graph, 1, 1, 1, 0), constant(graph, 1), model)]
    found = strategy_of("sub_fedavg", {}).combine(model, made, ROUND_CONTEXT)
    assert found.weights[W].ravel().tolist() == [1, 1, 1, 10]


@st.composite
def pruned_rounds(draw: st.DrawFn) -> tuple[Model, list[ClientUpdate], list[dict[str, Any]]]:
    graph = draw(model_graphs())
    model = Model(graph, random_weights(graph, 1))
    made, values = [], []
    for number in range(draw(st.integers(1, 3))):
        given_mask = draw(masks(graph))
        left = dict[str, BoolArray]()
        for name, count in WeightPruning(rate=0.4, target=0.0).lost(given_mask).items():
            left[name] = np.array(given_mask.held.get(name, np.ones(given_mask.shapes[name], np.bool_)))
            places = np.flatnonzero(left[name])
            left[name].flat[np.random.default_rng(number).permutation(places)[:count]] = False
        pruned = Mask(graph, given_mask.trained, given_mask.kept, {**given_mask.held, **left})
        values.append(random_weights(graph, 10 + number))
        made.append(sent(given_mask, draw(st.sampled_from([pruned, None])), values[-1], model, samples=number + 1))
    return model, made, values


@settings(max_examples=20, deadline=None)
@given(pruned_rounds())
def test_the_average_is_that_of_a_slow_loop(case: tuple[Model, list[ClientUpdate], list[dict[str, Any]]]) -> None:
    model, made, values = case
    found = strategy_of("sub_fedavg", {}).combine(model, made, ROUND_CONTEXT).weights
    for name, before in model.weights.items():
        sums, counts = np.zeros(before.shape), np.zeros(before.shape)
        for one, value in zip(made, values, strict=True):
            mask = one.next_mask or one.mask
            if name in mask.trained_tensors:
                for place in held_coordinates(mask, name):
                    sums[place] += float(value[name][place])
                    counts[place] += 1
        expected = np.where(counts > 0, sums / np.maximum(counts, 1), before)
        assert np.allclose(found[name], expected, rtol=1e-5, atol=1e-5), name


def test_masks_shrink_to_the_target_and_no_further() -> None:
    strategy = strategy_of("sub_fedavg", SURE | {"prune_rate": 0.3, "kept_target": 0.4})
    model, devices, shares = strategy.begin(GRAPH, MODEL.weights), [device("a"), device("b")], []
    for number in range(5):
        before = devices
        model, devices, _ = a_round(
            strategy, model, devices, round_context(number), steps=4, accuracy=lambda weights: 1.0
        )
        for old, new in zip(before, devices, strict=True):
            assert new.mask is not None
            for name, held in new.mask.held.items():
                assert old.mask is None or name not in old.mask.held or not np.any(held & ~old.mask.held[name])
        shares.append(devices[0].mask.cost.parameters / GRAPH.parameters)  # type: ignore[union-attr]
    assert shares == sorted(shares, reverse=True)
    assert 0.699 < shares[0] < 0.702
    assert 0.489 < shares[1] < 0.493
    assert 0.3999 < shares[2] <= 0.4
    assert shares[2] == shares[4]


def refused(left: Mask, match: str, given_mask: Mask | None = None) -> None:
    graph = left.graph
    model = Model(graph, random_weights(graph, 1))
    made = sent(given_mask or full_mask(graph), left, model.weights, model)
    with pytest.raises(WireFormatError, match=match):
        strategy_of("sub_fedavg", {"prune_rate": 0.25, "kept_target": 0.5}).check(made)


def test_a_mask_that_pruning_cannot_have_made_is_refused() -> None:
    graph = row(8)
    model = Model(graph, constant(graph, 1))
    strategy = strategy_of("sub_fedavg", {"prune_rate": 0.25, "kept_target": 0.5})
    strategy.check(sent(full_mask(graph), holding(graph, 1, 1, 1, 1, 1, 1, 0, 0), model.weights, model))
    refused(holding(graph, 1, 1, 1, 1, 1, 0, 0, 0), "lost 3 weights of 'head.weight', but pruning takes 2")
    refused(holding(graph, 1, 1, 1, 1, 1, 1, 1, 0), "lost 1 weights of 'head.weight', but pruning takes 2")
    half = holding(graph, 1, 1, 1, 1, 0, 0, 0, 0)
    refused(holding(graph, 1, 1, 1, 0, 0, 0, 0, 0), "lost 1 weights of 'head.weight', but pruning takes 0", half)
    refused(holding(graph, 1, 1, 1, 0, 1, 0, 0, 0), "holds weights of 'head.weight' that the mask of the plan", half)
    other = two_layers()
    refused(leading_channels(other, 0.5), "keeps other channels")
    refused(freeze(full_mask(other), ["body"]), "trains other layers")


def test_values_of_another_mask_are_refused() -> None:
    graph = row(8)
    model = Model(graph, constant(graph, 1))
    strategy = strategy_of("sub_fedavg", {"prune_rate": 0.25, "kept_target": 0.5})
    made = sent(full_mask(graph), holding(graph, 1, 1, 1, 1, 1, 1, 0, 0), model.weights, model)
    for count in (5, 7, 8):
        with pytest.raises(WireFormatError):
            strategy.check(dataclasses.replace(made, tensors={W: Dense(np.ones(count, np.float32))}))


def test_the_settings_reach_the_device() -> None:
    said = {"accuracy_threshold": 0.6, "kept_target": 0.5, "prune_rate": 0.05, "mask_distance": 0.01}
    planned = strategy_of("sub_fedavg", said).plan(MODEL, [device()], ROUND_CONTEXT)["pi-4"]
    assert planned.mask.digest == full_mask(GRAPH).digest
    assert rule_of(planned.rule) == WeightPruning(
        descent=Descent(learning_rate=0.01, momentum=0.5), accuracy_threshold=0.6, target=0.5, rate=0.05, distance=0.01
    )


def test_a_device_that_may_not_hold_the_whole_model_is_left_out_until_its_mask_fits() -> None:
    strategy = SubFedAvg()
    assert strategy.plan(MODEL, [device(weight_density=0.8)], ROUND_CONTEXT) == {}
    held = {"head.weight": np.arange(2560).reshape(10, 256) % 2 == 0}
    sparse = Mask.of(GRAPH, held=held)
    density = sparse.cost.parameters / GRAPH.parameters
    able = device(mask=sparse, weight_density=density + 1e-6)
    assert strategy.plan(MODEL, [able], ROUND_CONTEXT)["pi-4"].mask.digest == sparse.digest


def test_a_target_that_norms_alone_exceed_is_refused() -> None:
    with pytest.raises(MaskError, match="is impossible"):
        SubFedAvg(kept_target=0.001).begin(GRAPH, MODEL.weights)


def test_a_submodel_of_any_size_has_the_largest_channels() -> None:
    found = SubFedAvg().extract(MODEL, 0.3, 1)
    assert 0.25 * GRAPH.parameters < found.cost.parameters <= 0.3 * GRAPH.parameters
