"""What strangers send: wrong tensors are refused before they touch anything, and how far an update moves."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from edgefl.errors import WireFormatError
from edgefl.local_rules.sgd import Codec, Sgd
from edgefl.masks import Mask, full_mask, gather, leading_channels, random_channels
from edgefl.model_graph import ModelGraph
from edgefl.strategies import ClientUpdate, FedAvg, Model, submodel_norm
from edgefl.strategies.update_checks import check_mask_kept, check_values, movement
from edgefl.wire import Bits, Dense, Slice, Sparse
from examples.networks import cnn4
from tests.strategies.rounds import changes_of, client_update, random_weights, rounds
from tests.strategies.test_running_mean import with_dtypes

GRAPH = cnn4()
HALF = leading_channels(GRAPH, 0.5)
WEIGHTS = random_weights(GRAPH, 0)
NAME = "conv2.weight"


def changed(payload: Any, name: str = NAME, mask: Mask = HALF) -> ClientUpdate:
    """An honest upload with one tensor replaced."""
    made = client_update(mask, WEIGHTS, random_weights(GRAPH, 1))
    return dataclasses.replace(made, tensors={**made.tensors, name: payload})


def array(shape: tuple[int, ...] = (32, 16, 3, 3), dtype: Any = np.float32, value: float = 0.5) -> Any:
    return np.full(shape, value, dtype)


def test_an_honest_upload_is_taken() -> None:
    FedAvg().check(client_update(HALF, WEIGHTS, random_weights(GRAPH, 1)))
    FedAvg().check(changed(Dense(array())))


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (Dense(array((64, 32, 3, 3))), r"shape \(64, 32, 3, 3\), and the plan says \(32, 16, 3, 3\)"),
        (Dense(array((16, 32, 3, 3))), r"shape \(16, 32, 3, 3\), and the plan says \(32, 16, 3, 3\)"),
        (Dense(array((32, 16, 9))), r"shape \(32, 16, 9\), and the plan says"),
        (Dense(array(())), r"shape \(\), and the plan says"),
        (Dense(array(dtype=np.float64)), "dtype float64, and the plan says float32"),
        (Dense(array(dtype=np.int64)), "dtype int64, and the plan says float32"),
        (Dense(array(dtype=np.bool_)), "dtype bool, and the plan says float32"),
        (Sparse.where(array()), "codec sparse, and the plan says dense"),
        (Slice.of(full_mask(GRAPH), NAME, array((64, 32, 3, 3))), r"shape \(64, 32, 3, 3\), and the plan says"),
        (Bits.of(array() > 0), "codec bits, and the plan says dense"),
        (Dense(array(value=3e38)), "holds a number beyond 1e[+]18"),
        (Dense(array(value=-2e18)), "holds a number beyond 1e[+]18"),
        (Dense(array(value=math.nan)), "holds a number beyond 1e[+]18"),
    ],
)
def test_a_wrong_tensor_is_refused(payload: Any, message: str) -> None:
    with pytest.raises(WireFormatError, match=rf"tensor 'conv2.weight' (has )?{message}") as caught:
        FedAvg().check(changed(payload))
    assert caught.value.fix


def test_a_missing_and_an_additional_tensor_are_refused() -> None:
    made = client_update(HALF, WEIGHTS, random_weights(GRAPH, 1))
    fewer = {name: payload for name, payload in made.tensors.items() if name != NAME}
    with pytest.raises(WireFormatError, match=r"tensor 'conv2.weight' is missing from the body"):
        FedAvg().check(dataclasses.replace(made, tensors=fewer))
    with pytest.raises(WireFormatError, match="tensor 'conv9' is not expected in the body"):
        FedAvg().check(changed(Dense(array()), "conv9"))


def test_a_refusal_names_every_wrong_tensor_and_where_the_right_ones_are_named() -> None:
    made = client_update(full_mask(GRAPH), WEIGHTS, WEIGHTS)
    some = {name: payload for name, payload in made.tensors.items() if name.startswith(("conv1", "head"))}
    missing = [name for name in sorted(made.tensors) if name not in some]
    with pytest.raises(WireFormatError) as caught:
        FedAvg().check(dataclasses.replace(made, tensors={**some, "b": some["head.weight"], "a": some["head.weight"]}))
    listed, surplus = caught.value.problem.split(" are missing from the body, and ")
    assert all(repr(name) in listed for name in missing[:8])
    assert listed.endswith(f" and {len(missing) - 8} more") or len(missing) <= 8
    assert surplus == "tensors 'a', 'b' are not expected in the body"
    assert "`tensors`" in caught.value.fix


def test_a_frozen_layer_is_not_sent() -> None:
    mask = Mask.of(GRAPH, trained=["head"])
    made = client_update(mask, WEIGHTS, WEIGHTS)
    FedAvg().check(made)
    with pytest.raises(WireFormatError, match=r"'conv1.weight' is not expected"):
        FedAvg().check(
            dataclasses.replace(made, tensors={**made.tensors, "conv1.weight": Dense(WEIGHTS["conv1.weight"])})
        )


def test_a_new_mask_is_refused_where_the_rule_changes_none() -> None:
    made = client_update(HALF, WEIGHTS, WEIGHTS)
    check_mask_kept(dataclasses.replace(made, next_mask=leading_channels(GRAPH, 0.5)))
    with pytest.raises(WireFormatError, match=r"new mask sha256:.*, but the rule 'sgd' changes no mask. Send no mask"):
        FedAvg().check(dataclasses.replace(made, next_mask=full_mask(GRAPH)))


def test_sparse_entries_must_lie_where_the_mask_holds_them() -> None:
    held = np.arange(2560).reshape(10, 256) % 3 == 0
    mask = Mask.of(GRAPH, held={"head.weight": held})
    made = client_update(mask, WEIGHTS, random_weights(GRAPH, 1), codec=Codec.SPARSE)
    check_values(Sgd(codec=Codec.SPARSE), mask, made.tensors)
    dense = gather(mask, WEIGHTS)["head.weight"]
    for elsewhere in (~held, np.roll(held, 1), np.ones_like(held)):
        wrong = {**made.tensors, "head.weight": Sparse.where(dense, elsewhere)}
        with pytest.raises(WireFormatError, match=r"'head.weight' does not have exactly the entries"):
            check_values(Sgd(codec=Codec.SPARSE), mask, wrong)
    with pytest.raises(WireFormatError, match="codec sparse, and the plan says dense"):
        check_values(Sgd(), mask, made.tensors)


@settings(max_examples=25)
@given(rounds())
def test_movement_is_the_norm_of_all_changes(case: tuple[Model, list[ClientUpdate]]) -> None:
    model, made = case
    for one in made:
        # A change of statistics is measured from what the device was given, like any other.
        given_model = Model(model.graph, one.base)
        exact = math.fsum(v**2 for name in one.tensors for v in changes_of(given_model, one, name).values())
        assert movement(one) == pytest.approx(math.sqrt(exact), rel=1e-5, abs=1e-6)


def test_whole_numbers_do_not_count_as_movement() -> None:
    graph: ModelGraph = with_dtypes()
    base = random_weights(graph, 0, 10)
    new = {name: values + np.array(3, values.dtype) for name, values in base.items()}
    made = client_update(full_mask(graph), base, new)
    assert movement(made) == pytest.approx(3 * math.sqrt(3 * 15), rel=1e-3)
    floats = [base[name].astype(np.float64) for name in ("float16", "float32", "float64")]
    assert submodel_norm(made.mask, base) == pytest.approx(math.sqrt(sum((f**2).sum() for f in floats)), rel=1e-3)


def test_the_norm_of_a_part_is_that_of_what_is_trained() -> None:
    mask = random_channels(GRAPH, 0.5, np.random.default_rng(0))
    frozen = Mask.of(GRAPH, trained=["conv2"], kept=mask.kept)
    part = gather(frozen, WEIGHTS)[NAME].astype(np.float64)
    assert submodel_norm(frozen, WEIGHTS) == pytest.approx(math.sqrt((part**2).sum()), rel=1e-5)


def test_the_movement_of_huge_values_is_a_number_and_not_a_warning() -> None:
    made = changed(Dense(array(value=1e18)))
    FedAvg().check(made)
    assert movement(made) > 1e18
