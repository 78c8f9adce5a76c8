"""Tuning the global model to one device: what is trained, and that nothing leaves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.errors import MaskError
from edgefl.local_rules import FineTune, Sgd
from edgefl.local_rules.fine_tune import HeadTreatment
from edgefl.masks import Mask, full_mask
from edgefl.model_graph import ModelGraph
from tests.local_rules.quadratic import Quadratic, assert_resumes, part_of, train
from tests.random_models import masked_models

HEAD = {"head.weight", "head.bias"}


def changed(rule: FineTune, mask: Mask) -> set[str]:
    part = part_of(mask, 1)
    state, update = train(rule, part, Quadratic(mask.graph), 2)
    assert update.tensors == {}
    assert update.mask is mask
    moved = {name for name, array in update.weights.items() if not np.array_equal(array, part.weights[name])}
    assert moved == set(state.mask.trained_tensors)
    return moved


def test_the_head_is_trained_frozen_or_alone(small: ModelGraph) -> None:
    mask = full_mask(small)
    everything = set(small.tensor)
    assert changed(FineTune(), mask) == everything
    assert changed(FineTune(head=HeadTreatment.FREEZE), mask) == everything - HEAD
    assert changed(FineTune(head=HeadTreatment.HEAD_ONLY), mask) == HEAD


def test_layers_that_the_mask_freezes_stay_frozen(small: ModelGraph) -> None:
    mask = Mask.of(small, trained=["conv2", "head"])
    assert changed(FineTune(), mask) == {"conv2.weight", "conv2.bias"} | HEAD
    assert changed(FineTune(head=HeadTreatment.HEAD_ONLY), mask) == HEAD


def test_tuning_nothing_is_refused(small: ModelGraph) -> None:
    part = part_of(Mask.of(small, trained=["head"]), 1)
    with pytest.raises(MaskError, match="leaves no layer to train"):
        FineTune(head=HeadTreatment.FREEZE).begin(part)


@given(masked_models())
def test_tuning_everything_is_gradient_descent(model: tuple[ModelGraph, Mask]) -> None:
    part = part_of(model[1], 1)
    tuned, trained = (train(rule, part, Quadratic(model[0]), 3)[1].weights for rule in (FineTune(), Sgd()))
    assert all(np.array_equal(array, trained[name]) for name, array in tuned.items())


@given(masked_models(), st.integers(0, 2))
def test_a_round_goes_on_after_a_crash(model: tuple[ModelGraph, Mask], stop: int) -> None:
    assert_resumes(FineTune(), part_of(model[1], 2, steps=3), Quadratic(model[0]), steps=3, stop=stop)
