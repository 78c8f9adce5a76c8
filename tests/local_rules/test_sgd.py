"""Gradient descent within a mask: what moves, what stays, what is sent."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgefl.local_rules import Batch, Descent, Sgd, StepResult, TrainingInput, trained_parameters
from edgefl.local_rules.sgd import Codec
from edgefl.masks import Mask, Weights
from edgefl.model_graph import ModelGraph, TensorRole
from edgefl.wire import Body, BodyKind, Dense, Sparse, decode, encode
from tests.local_rules.quadratic import Quadratic, assert_frozen_stay, assert_resumes, part_of, train
from tests.random_models import masked_models

EVERYTHING = Descent(learning_rate=0.1, momentum=0.9, nesterov=True, weight_decay=0.01, proximal=0.1, clip_norm=5.0)


def sent(tensors: Any) -> dict[str, Any]:
    """What arrives, as whole tensors."""
    payloads = decode(encode(Body(BodyKind.UPDATE, tensors))).tensors
    arrived = {}
    for name, payload in payloads.items():
        assert isinstance(payload, Dense | Sparse)
        arrived[name] = payload.array if isinstance(payload, Dense) else payload.to_dense()
    return arrived


@given(masked_models(), st.sampled_from(Codec))
def test_what_is_trained_is_sent_and_nothing_else_moves(model: tuple[ModelGraph, Mask], codec: Codec) -> None:
    graph, mask = model
    part = part_of(mask, 1, steps=3)
    before = {name: array.copy() for name, array in part.weights.items()}
    _, update = train(Sgd(descent=EVERYTHING, codec=codec), part, Quadratic(graph), 3)
    assert all(np.array_equal(part.weights[name], array) for name, array in before.items())
    assert_frozen_stay(part, update)
    arrived = sent(update.tensors)
    assert set(arrived) == set(mask.trained_tensors)
    for name, array in arrived.items():
        assert array.dtype == np.float32
        assert np.array_equal(array, update.weights[name])
    for name, held in mask.held.items():
        assert not update.weights[name][~held].any()
    for name in trained_parameters(mask):
        held = mask.held.get(name, np.ones(mask.shapes[name], np.bool_))
        assert (update.weights[name] != before[name])[held].any() or not held.any()


@given(masked_models(), st.integers(0, 4))
def test_a_round_goes_on_after_a_crash_as_if_nothing_had_happened(model: tuple[ModelGraph, Mask], stop: int) -> None:
    graph, mask = model
    assert_resumes(Sgd(descent=EVERYTHING), part_of(mask, 2, steps=5), Quadratic(graph), steps=5, stop=stop)


@given(masked_models())
def test_statistics_of_trained_norms_are_the_engines_and_those_of_frozen_norms_stay(
    model: tuple[ModelGraph, Mask],
) -> None:
    graph, mask = model
    part = part_of(mask, 3)
    _, update = train(Sgd(), part, Quadratic(graph), 2)
    for name in (tensor.name for tensor in graph.tensors if tensor.role is TensorRole.STATISTIC):
        held = mask.held.get(name, True) if name in mask.trained_tensors else False
        expected = np.where(held, part.weights[name] + np.float32(1) + np.float32(2), part.weights[name])
        assert np.array_equal(update.weights[name], expected)  # the engine adds 1, then 2


def test_only_held_weights_are_sent_where_a_mask_has_holes(small: ModelGraph) -> None:
    held = np.zeros((4, 2, 3, 3), np.bool_)
    held[0, 0] = True
    mask = Mask.of(small, held={"conv2.weight": held})
    _, update = train(Sgd(codec=Codec.SPARSE), part_of(mask, 4), Quadratic(small), 1)
    payload = update.tensors["conv2.weight"]
    assert isinstance(payload, Sparse)
    assert payload.values.size == 9
    assert isinstance(update.tensors["conv1.weight"], Dense)
    assert isinstance(train(Sgd(), part_of(mask, 4), Quadratic(small), 1)[1].tensors["conv2.weight"], Dense)


def test_the_last_learning_rate_is_reported(small: ModelGraph) -> None:
    rule = Sgd(descent=Descent(learning_rate=0.25))
    part = TrainingInput(Mask.of(small), part_of(Mask.of(small), 1).weights, seed=1)
    assert train(rule, part, Quadratic(small), 1)[1].metrics == {"learning_rate": 0.25}


class _Replacing(Quadratic):
    """An engine that returns a new value of a weight, as if it were a statistic."""

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        result = Quadratic.__call__(self, weights, batch)
        new = {"conv1.weight": np.full_like(weights["conv1.weight"], 7)}
        return replace(result, statistics={**result.statistics, **new})


def test_a_new_value_of_a_weight_is_not_adopted(small: ModelGraph) -> None:
    part = part_of(Mask.of(small), 1)
    expected, found = (train(Sgd(), part, run, 1)[1].weights for run in (Quadratic(small), _Replacing(small)))
    assert all(np.array_equal(found[name], array) for name, array in expected.items())
