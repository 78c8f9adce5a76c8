"""FedSparsify on a device: which weights are left after training, and what is sent."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgefl.local_rules import Descent, MagnitudePruning, Sgd
from edgefl.local_rules.descent import weight_tensors
from edgefl.local_rules.magnitude_pruning import largest_weights, weights_left
from edgefl.masks import Mask, freeze, full_mask
from edgefl.model_graph import GraphBuilder, ModelGraph
from edgefl.wire import Dense, Sparse
from tests.local_rules.quadratic import Quadratic, assert_frozen_stay, assert_resumes, part_of, train
from tests.random_models import masked_models

MOVING = Descent(learning_rate=0.1, momentum=0.9, weight_decay=0.01)


def test_the_largest_weights_of_all_layers_by_hand() -> None:
    """Half of six: |5|, |-4| and |3|; what the mask does not hold is not there to be chosen."""
    build = GraphBuilder("small", channels=2)
    build.linear("head", build.linear("a", build.input, 2), 1, head=True)
    whole = full_mask(build.finish())
    weights = {"a.weight": np.array([[1, 5], [2, -4]], np.float32), "head.weight": np.array([[3, -2.5]], np.float32)}
    assert weights_left(whole, 0.5) == 3
    found = largest_weights(whole, weights, 3)
    assert found["a.weight"].tolist() == [[False, True], [False, True]]
    assert found["head.weight"].tolist() == [[True, False]]
    without = Mask(whole.graph, whole.trained, whole.kept, {"a.weight": np.array([[True, False], [True, True]])})
    found = largest_weights(without, weights, 3)
    assert found["a.weight"].tolist() == [[False, False], [False, True]]
    assert found["head.weight"].tolist() == [[True, True]]
    assert weights_left(without, 1.0) == 5


@given(masked_models(), st.sampled_from([1.0, 0.4, 0.05]))
def test_training_is_gradient_descent_and_then_the_smallest_go(model: tuple[ModelGraph, Mask], kept: float) -> None:
    graph, mask = model
    part = part_of(mask, 2, steps=3)
    _, update = train(MagnitudePruning(descent=MOVING, kept=kept), part, Quadratic(graph), 3)
    trained = train(Sgd(descent=MOVING), part, Quadratic(graph), 3)[1].weights
    left, gone = [], []
    for name in mask.trained_tensors:
        payload = update.tensors[name]
        if name not in weight_tensors(mask):
            assert isinstance(payload, Dense)
            assert np.array_equal(payload.array, trained[name])
            continue
        assert isinstance(payload, Sparse)
        held = mask.held.get(name, np.ones(mask.shapes[name], np.bool_))
        flags = np.zeros(held.shape, np.bool_)
        flags.reshape(-1)[payload.indices()] = True
        assert not (flags & ~held).any()
        assert np.array_equal(payload.values, trained[name][flags])
        assert np.array_equal(update.weights[name], np.where(flags, trained[name], 0))
        left += np.abs(trained[name][flags]).tolist()
        gone += np.abs(trained[name][held & ~flags]).tolist()
    assert len(left) == (weights_left(mask, kept) if weight_tensors(mask) else 0)
    assert not left or not gone or min(left) >= max(gone)
    assert update.mask is mask


@given(masked_models(), st.integers(0, 3))
def test_a_crash_changes_nothing(model: tuple[ModelGraph, Mask], stop: int) -> None:
    graph, mask = model
    assert_resumes(MagnitudePruning(descent=MOVING, kept=0.3), part_of(mask, 3), Quadratic(graph), steps=4, stop=stop)


def test_frozen_layers_stay_and_are_not_pruned() -> None:
    build = GraphBuilder("frozen", channels=3)
    build.linear("head", build.linear("b", build.linear("a", build.input, 4), 5), 2, head=True)
    graph = build.finish()
    part = part_of(freeze(full_mask(graph), ["a"]), 4)
    _, update = train(MagnitudePruning(kept=0.2), part, Quadratic(graph), 3)
    assert_frozen_stay(part, update)
    assert np.array_equal(update.weights["a.weight"], part.weights["a.weight"])
