"""Training alone: the device goes on with its own model, and nothing leaves."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.local_rules import LocalTraining, Sgd
from edgefl.masks import Mask, gather
from edgefl.model_graph import ModelGraph
from tests.local_rules.quadratic import Quadratic, assert_resumes, part_of, random_weights, train
from tests.random_models import masked_models


@settings(max_examples=30)
@given(masked_models())
def test_the_first_round_is_gradient_descent_on_the_model_as_sent(model: tuple[ModelGraph, Mask]) -> None:
    part = part_of(model[1], 1)
    _, alone = train(LocalTraining(), part, Quadratic(model[0]), 3)
    _, together = train(Sgd(), part, Quadratic(model[0]), 3)
    assert alone.tensors == {}
    assert alone.mask is part.mask
    assert all(np.array_equal(array, together.weights[name]) for name, array in alone.weights.items())


@settings(max_examples=30)
@given(masked_models())
def test_further_rounds_go_on_with_the_devices_own_model(model: tuple[ModelGraph, Mask]) -> None:
    graph, mask = model
    own = gather(mask, random_weights(graph, 7))
    kept = {name: array.copy() for name, array in own.items()}
    _, found = train(LocalTraining(), part_of(mask, 1, own=lambda: own), Quadratic(graph), 3)
    _, expected = train(Sgd(), part_of(mask, 7), Quadratic(graph), 3)
    assert all(np.array_equal(array, expected.weights[name]) for name, array in found.weights.items())
    assert all(np.array_equal(array, kept[name]) for name, array in own.items())


@settings(max_examples=30)
@given(masked_models(), st.integers(0, 2))
def test_a_round_goes_on_after_a_crash(model: tuple[ModelGraph, Mask], stop: int) -> None:
    own = gather(model[1], random_weights(model[0], 7))
    part = part_of(model[1], 2, steps=3, own=lambda: own)
    assert_resumes(LocalTraining(), part, Quadratic(model[0]), steps=3, stop=stop)
