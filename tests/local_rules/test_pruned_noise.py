"""Hermes' pruning with FedMRN's bits: each does what it does alone, at the widths that are left."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.local_rules import (
    Batch,
    ChannelPruning,
    Descent,
    MaskedNoise,
    PrunedNoise,
    StepResult,
    TrainingInput,
    rebuild,
    rule_of,
    trained_parameters,
)
from edgefl.local_rules.descent import weight_tensors
from edgefl.local_rules.group_lasso import group_lasso_gradient, penalised
from edgefl.local_rules.masked_noise import MaskKind, NoiseDistribution
from edgefl.masks import Mask, Weights, full_mask, gather
from edgefl.model_graph import ModelGraph
from edgefl.values import RuleSettings, settings_from
from edgefl.wire import Bits, Body, BodyKind, Dense, decode, encode, measure
from tests.local_rules.quadratic import Quadratic, assert_frozen_stay, assert_resumes, nth_batch, part_of, train
from tests.local_rules.test_channel_pruning import accuracy_of, perceptron, perceptron_weights
from tests.random_models import masked_models

GOOD = accuracy_of(0.9)


@given(masked_models(), st.integers(0, 99), st.floats(0.05, 0.9), st.floats(0.05, 1))
def test_what_goes_is_what_pruning_alone_takes(
    found: tuple[ModelGraph, Mask], seed: int, rate: float, target: float
) -> None:
    part = part_of(found[1], seed, accuracy=GOOD)
    alone = ChannelPruning(rate=rate, target=target).begin(part)
    state = PrunedNoise(rate=rate, target=target).begin(part)
    assert state.mask.digest == alone.mask.digest
    assert all(np.array_equal(state.weights[name], array) for name, array in alone.weights.items())
    assert float(state.memory["accuracy_before_pruning"]) == 0.9


@given(masked_models(), st.integers(0, 99), st.sampled_from(list(MaskKind)))
def test_without_a_penalty_a_pruned_part_trains_as_if_it_had_come_at_that_size(
    found: tuple[ModelGraph, Mask], seed: int, kind: MaskKind
) -> None:
    graph, mask = found
    part = part_of(mask, seed, accuracy=GOOD, steps=3)
    descent = Descent(learning_rate=0.05, momentum=0.5, proximal=0.1)
    rule = PrunedNoise(descent=descent, rate=0.5, target=0.01, lasso=0.0, masks=kind)
    state, update = train(rule, part, Quadratic(graph), 3)
    small = dataclasses.replace(part, mask=state.mask, weights=gather(state.mask, _whole(part)))
    _, alone = train(MaskedNoise(descent=descent, masks=kind), small, Quadratic(graph), 3)
    assert update.mask.digest == alone.mask.digest
    assert all(np.array_equal(update.weights[name], array) for name, array in alone.weights.items())
    for name, payload in alone.tensors.items():
        field = "packed" if isinstance(payload, Bits) else "array"
        assert np.array_equal(getattr(update.tensors[name], field), getattr(payload, field))
    assert_frozen_stay(part, update)


def _whole(part: TrainingInput) -> dict[str, Any]:
    whole = {t.name: np.zeros(t.shape, np.float32) for t in part.mask.graph.tensors}
    for name, array in part.weights.items():
        whole[name][part.mask.index(name)] = array
    return whole


@given(masked_models(), st.sampled_from(list(MaskKind)), st.integers(0, 2**64 - 1))
def test_the_coordinator_rebuilds_the_update_from_the_new_mask(
    found: tuple[ModelGraph, Mask], kind: MaskKind, seed: int
) -> None:
    graph, mask = found
    part = TrainingInput(mask, part_of(mask, 1).weights, seed, steps=2, accuracy=GOOD)
    _, update = train(PrunedNoise(masks=kind, rate=0.5, target=0.1), part, Quadratic(graph), 2)
    base = gather(update.mask, _whole(part))
    arrived = decode(encode(Body(BodyKind.UPDATE, update.tensors, seed))).tensors
    assert set(arrived) == set(update.mask.trained_tensors)
    for name, payload in arrived.items():
        assert payload.shape == update.mask.shapes[name]
        if isinstance(payload, Bits):
            noise = rebuild(payload, seed, name, masks=kind, held=update.mask.held.get(name))
            assert np.array_equal(base[name] + noise, update.weights[name])
        else:
            assert isinstance(payload, Dense)
            assert np.array_equal(payload.array, update.weights[name])


@given(masked_models(), st.integers(0, 99), st.integers(0, 3))
def test_a_resumed_round_ends_like_an_uninterrupted_one(found: tuple[ModelGraph, Mask], seed: int, stop: int) -> None:
    graph, mask = found
    rule = PrunedNoise(descent=Descent(momentum=0.9), rate=0.5, target=0.1, lasso=0.01)
    assert_resumes(rule, part_of(mask, seed, accuracy=GOOD, steps=4), Quadratic(graph), steps=4, stop=stop)


def test_the_penalty_moves_the_update_at_the_weights_of_the_forward_pass() -> None:
    part = TrainingInput(full_mask(perceptron()), perceptron_weights(), seed=3, steps=2, accuracy=GOOD)
    seen: dict[str, Any] = {}

    def flat(weights: Weights, batch: Batch) -> StepResult:
        seen.update({name: array.copy() for name, array in weights.items()})
        names = trained_parameters(part.mask)
        return StepResult(0.0, np.ones(1, np.bool_), {name: np.zeros_like(weights[name]) for name in names})

    rule = PrunedNoise(descent=Descent(learning_rate=0.5), rate=0.25, lasso=0.01)
    state = rule.begin(part)
    assert state.mask.widths["hidden"] == 3
    rule.step(part, state, nth_batch(0), flat)
    for name in penalised(state.mask, weight_tensors(state.mask)):
        slope = group_lasso_gradient(state.mask, name, seen[name])
        assert np.allclose(state.memory[f"update:{name}"], -0.5 * 0.01 * slope, atol=1e-9)
        assert slope.any()


def test_metrics_tell_of_both() -> None:
    part = TrainingInput(full_mask(perceptron()), perceptron_weights(), seed=3, accuracy=GOOD)
    _, update = train(PrunedNoise(rate=0.25, lasso=0.001), part, Quadratic(part.mask.graph), 1)
    assert update.metrics["pruned_channels"] == 1
    assert update.metrics["kept_fraction"] == 17 / 22
    assert update.metrics["lasso_coefficient"] == 0.001
    assert update.metrics["accuracy_before_pruning"] == 0.9
    assert 0 <= update.metrics["ones"] <= 1


@pytest.mark.parametrize("accuracy", [0.5, None])
def test_a_device_that_may_not_prune_sends_bits_of_what_it_was_given(accuracy: float | None) -> None:
    check = None if accuracy is None else accuracy_of(accuracy)
    part = TrainingInput(full_mask(perceptron()), perceptron_weights(), seed=3, accuracy=check)
    _, update = train(PrunedNoise(), part, Quadratic(part.mask.graph), 1)
    assert update.mask is part.mask
    assert update.tensors["hidden.weight"].shape == (4, 2)


def test_a_weight_that_is_left_is_one_bit_on_the_wire() -> None:
    part = TrainingInput(full_mask(perceptron()), perceptron_weights(), seed=3, accuracy=GOOD)
    _, update = train(PrunedNoise(rate=0.5), part, Quadratic(part.mask.graph), 1)
    size = measure(encode(Body(BodyKind.UPDATE, update.tensors, part.seed)))
    # Two hidden units: 2 x 2 and 2 x 2 weights in a byte each; biases of 2 and 2 in full.
    assert size.tensor_bytes == {"hidden.weight": 1, "hidden.bias": 8, "head.weight": 1, "head.bias": 8}


def test_settings_make_the_same_rule_on_the_device() -> None:
    rule = PrunedNoise(
        rate=0.1,
        target=0.4,
        masks=MaskKind.SIGNED,
        bound=0.002,
        distribution=NoiseDistribution.GAUSSIAN,
        descent=Descent(learning_rate=0.3),
    )
    assert rule_of(RuleSettings(name="pruned_noise", settings=settings_from(rule))) == rule
