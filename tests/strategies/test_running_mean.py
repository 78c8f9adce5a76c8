"""Running means against a slow loop over coordinates, and by hand."""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings

from edgefl.errors import MaskError
from edgefl.local_rules.sgd import Codec
from edgefl.masks import Array, Mask, block_changes, full_mask, leading_channels, random_channels
from edgefl.model_graph import Dtype, GraphBuilder, Layer, ModelGraph, TensorRole, TensorSpec
from edgefl.strategies import ClientUpdate, Model, Overlap, RunningMean, running_mean
from examples.networks import cnn4, preresnet18
from tests.strategies.rounds import client_update, random_weights, rounds, slow_mean


def mean(model: Model, made: list[ClientUpdate], overlap: Overlap = Overlap.HOLDERS) -> dict[str, Array]:
    running = RunningMean(model, overlap)
    for one in made:
        running.add(one, one.result.samples * one.trust)
    return running.result()


def two_by_two() -> ModelGraph:
    """A linear layer of two channels that reads two, and a head."""
    build = GraphBuilder("tiny", channels=2)
    x = build.linear("hidden", build.input, 2, bias=False)
    build.linear("head", x, 1, bias=False, head=True)
    return build.finish()


@contextmanager
def tiny_blocks() -> Iterator[None]:
    """Small tensors go the ways of large ones: many blocks, and whole ones two at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(block_changes, "BLOCK", 5)
        patch.setattr(running_mean, "BLOCK", 5)
        yield


@settings(max_examples=40)
@given(rounds())
def test_tensors_of_many_blocks_are_averaged_within_the_bound(case: tuple[Model, list[ClientUpdate]]) -> None:
    model, made = case
    with tiny_blocks():
        assert_within_the_bound(model, made, Overlap.HOLDERS)


@settings(max_examples=40)
@given(rounds())
def test_a_mean_by_holders_is_within_its_bound_of_the_exact_one(case: tuple[Model, list[ClientUpdate]]) -> None:
    model, made = case
    assert_within_the_bound(model, made, Overlap.HOLDERS)


@settings(max_examples=20)
@given(rounds())
def test_a_mean_by_participants_is_within_its_bound_of_the_exact_one(case: tuple[Model, list[ClientUpdate]]) -> None:
    model, made = case
    assert_within_the_bound(model, made, Overlap.PARTICIPANTS)


def assert_within_the_bound(model: Model, made: list[ClientUpdate], overlap: Overlap) -> None:
    found, (exact, size) = mean(model, made, overlap), slow_mean(model, made, overlap)
    assert list(found) == list(model.weights)
    for name, array in found.items():
        assert (array.dtype, array.shape) == (model.weights[name].dtype, model.weights[name].shape)
        half_a_unit = 0.5 * np.spacing(np.abs(array)).astype(np.float64)
        bound = half_a_unit + (2 * len(made) + 4) * 2**-24 * size[name]
        assert np.all(np.abs(array - exact[name]) <= bound * (1 + 1e-6))


def test_three_devices_by_hand() -> None:
    graph = two_by_two()
    weights = {"hidden.weight": np.array([[1, 2], [3, 4]], np.float32), "head.weight": np.array([[10, 20]], np.float32)}
    model = Model(graph, weights)
    all_of_it, first, head_only = (
        full_mask(graph),
        Mask.of(graph, kept={"hidden": [0]}),
        Mask.of(graph, trained=["head"]),
    )
    made = [
        client_update(all_of_it, model.weights, {n: w + 1 for n, w in model.weights.items()}, samples=10),
        client_update(first, model.weights, {n: w + 4 for n, w in model.weights.items()}, samples=20),
        client_update(head_only, model.weights, {n: w - 5 for n, w in model.weights.items()}, samples=30),
    ]
    # hidden: the first row by the first two, (10 * 1 + 20 * 4) / 30 = 3; the second row by the first alone.
    # head: its first column by all, (10 + 80 - 150) / 60 = -1; its second by the first and the last, -140 / 40.
    found = mean(model, made)
    assert found["hidden.weight"].tolist() == [[4, 5], [4, 5]]
    assert found["head.weight"].tolist() == [[9, 16.5]]
    # Of all 60 samples: 90 / 60 = 1.5 and 10 / 60; -60 / 60 and -140 / 60.
    found = mean(model, made, Overlap.PARTICIPANTS)
    assert np.allclose(found["hidden.weight"], [[2.5, 3.5], [3 + 1 / 6, 4 + 1 / 6]])
    assert np.allclose(found["head.weight"], [[9, 20 - 7 / 3]])


def test_what_nobody_held_or_trained_keeps_its_bits() -> None:
    graph = cnn4()
    model = Model(graph, random_weights(graph, 0))
    mask = leading_channels(graph, 0.5)
    half = Mask.of(graph, trained=set(mask.trained) - {"conv1"}, kept=mask.kept)
    made = [client_update(half, model.weights, random_weights(graph, seed)) for seed in (1, 2)]
    found = mean(model, made)
    assert found["conv1.weight"] is model.weights["conv1.weight"]
    assert np.array_equal(found["conv2.weight"][32:], model.weights["conv2.weight"][32:])
    assert np.array_equal(found["conv2.weight"][:, 16:], model.weights["conv2.weight"][:, 16:])
    assert np.all(found["conv2.weight"][:32, :16] != model.weights["conv2.weight"][:32, :16])


def test_weights_of_a_tensor_that_are_not_held_keep_their_values() -> None:
    graph = two_by_two()
    model = Model(graph, random_weights(graph, 0))
    held = np.array([[True, False], [False, False]])
    mask = Mask.of(graph, held={"hidden.weight": held})
    new = {name: array + 1 for name, array in model.weights.items()}
    for codec in Codec:
        found = mean(model, [client_update(mask, model.weights, new, codec=codec)])
        assert np.array_equal(found["hidden.weight"] != model.weights["hidden.weight"], held)


def test_an_old_update_contributes_its_change_and_not_its_values() -> None:
    graph = two_by_two()
    now = {name: np.full_like(array, 100) for name, array in random_weights(graph, 0).items()}
    then = {name: np.full_like(array, 7) for name, array in now.items()}
    new = {name: array + 2 for name, array in then.items()}
    found = mean(Model(graph, now), [client_update(full_mask(graph), then, new, trust=0.5)])
    assert all(np.all(array == 102) for array in found.values())


def test_statistics_of_an_old_update_are_averaged_as_values() -> None:
    """The change of an old variance, from 9 to 2, would make that of now negative."""
    build = GraphBuilder("norm", channels=2)
    build.linear("head", build.norm("norm", build.input, statistics=True), 1, head=True)
    graph = build.finish()
    shapes = {tensor.name: tensor.shape for tensor in graph.tensors}
    now, then = ({name: np.full(shape, value, np.float32) for name, shape in shapes.items()} for value in (1, 9))
    new = {name: np.full_like(array, 2) for name, array in now.items()}
    found = mean(Model(graph, now), [client_update(full_mask(graph), then, new)])
    assert found["norm.running_var"].tolist() == found["norm.running_mean"].tolist() == [2, 2]
    assert found["norm.weight"].tolist() == [-6, -6]


def with_dtypes() -> ModelGraph:
    """A model with a tensor of every dtype, among them a counter without axes."""
    specs = [TensorSpec(dtype.value, (3, 5), TensorRole.WEIGHT, dtype=dtype) for dtype in Dtype]
    specs.append(TensorSpec("batches", (), TensorRole.STATISTIC, dtype=Dtype.INT64))
    return ModelGraph("dtypes", tuple(specs), (Layer("all", "linear", "all", tuple(s.name for s in specs)),), ())


def test_every_dtype_comes_back_as_it_was() -> None:
    graph = with_dtypes()
    model = Model(graph, random_weights(graph, 0, 100))
    new = [random_weights(graph, seed, 100) for seed in (1, 2, 3)]
    mask = full_mask(graph)
    made = [client_update(mask, model.weights, w, samples=s) for w, s in zip(new, (1, 2, 4), strict=True)]
    found = mean(model, made)
    for tensor in graph.tensors:
        exact = sum(s * w[tensor.name].astype(np.float64) for w, s in zip(new, (1, 2, 4), strict=True)) / 7
        array = found[tensor.name]
        assert (array.dtype, array.shape) == (np.dtype(tensor.dtype.value), tensor.shape)
        if tensor.dtype.startswith("int"):
            assert np.array_equal(array, np.rint(exact))
        else:
            smallest = 1e-12 if array.dtype == np.float64 else 1e-4
            assert np.allclose(array, exact, rtol=2 * float(np.finfo(array.dtype).eps), atol=smallest)


def test_whole_numbers_stay_within_their_dtype() -> None:
    graph = with_dtypes()
    model = Model(graph, random_weights(graph, 0))
    for end in ("min", "max"):
        new = dict(model.weights)
        for name in ("int64", "int32"):
            new[name] = np.full((3, 5), getattr(np.iinfo(name), end))
        found = mean(model, [client_update(full_mask(graph), model.weights, new)])
        for name in ("int64", "int32"):
            assert np.allclose(found[name].astype(float), float(new[name][0, 0]), rtol=1e-9)


def test_equal_updates_in_equal_order_give_equal_bits() -> None:
    graph = cnn4()
    model = Model(graph, random_weights(graph, 0))
    generator = np.random.default_rng(0)
    masks = [full_mask(graph), leading_channels(graph, 0.5), random_channels(graph, 0.7, generator)]
    new = [random_weights(graph, seed) for seed in (1, 2, 3)]
    made = [client_update(m, model.weights, w, samples=s) for m, w, s in zip(masks, new, (3, 5, 7), strict=True)]
    first, second = mean(model, made), mean(model, [dataclasses.replace(one) for one in made])
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_whole_tensors_of_any_number_of_updates_are_all_added() -> None:
    """Some of the tensors wait for the next update, and the last one has none."""
    graph = cnn4()
    model = Model(graph, random_weights(graph, 0))
    older = random_weights(graph, 50)
    whole, part = full_mask(graph), leading_channels(graph, 0.5)
    for count in range(1, 6):
        made = []
        for number in range(count):
            base = older if number == 2 else model.weights
            new = {name: array + np.float32(number + 1) for name, array in base.items()}
            made.append(client_update(part if number == 3 else whole, base, new, samples=1))
        last = mean(model, made)["conv4.weight"][-1, -1] - model.weights["conv4.weight"][-1, -1]
        steps = [number + 1 for number in range(count) if number != 3]
        assert np.allclose(last, sum(steps) / len(steps), atol=1e-5)


def test_a_weight_that_nobody_changed_keeps_its_bits() -> None:
    graph = cnn4()
    model = Model(graph, random_weights(graph, 0))
    masks = [full_mask(graph), leading_channels(graph, 0.5), full_mask(graph)]
    found = mean(model, [client_update(m, model.weights, model.weights, samples=7 + n) for n, m in enumerate(masks)])
    assert all(array.tobytes() == model.weights[name].tobytes() for name, array in found.items())


def test_a_mean_of_nothing_is_the_model() -> None:
    model = Model(cnn4(), random_weights(cnn4(), 0))
    nobody = client_update(full_mask(model.graph), model.weights, random_weights(model.graph, 1), samples=0)
    for found in (mean(model, []), mean(model, [nobody])):
        assert all(found[name] is model.weights[name] for name in found)


def test_the_result_can_be_sent_without_a_copy_and_the_model_is_unchanged() -> None:
    graph = cnn4()
    model = Model(graph, random_weights(graph, 0))
    found = mean(model, [client_update(full_mask(graph), model.weights, random_weights(graph, 1))])
    assert all(not array.flags.writeable and array.flags.c_contiguous for array in found.values())
    assert all(np.array_equal(array, model.weights[name]) for name, array in random_weights(graph, 0).items())


def test_large_tensors_are_added_block_by_block_like_small_ones() -> None:
    """Tensors of several blocks, with whole, leading and scattered channels."""
    graph = preresnet18()
    model = Model(graph, random_weights(graph, 0))
    generator = np.random.default_rng(0)
    masks = [full_mask(graph), leading_channels(graph, 0.6), random_channels(graph, 0.5, generator)]
    new = [random_weights(graph, seed) for seed in (1, 2, 3)]
    made = [client_update(m, model.weights, w, samples=s) for m, w, s in zip(masks, new, (3, 5, 7), strict=True)]
    found = mean(model, made)
    for name in ("stage3.1.conv1.weight", "stage3.0.shortcut.weight", "head.weight"):
        total, weight = np.zeros(model.weights[name].shape), np.zeros(model.weights[name].shape)
        for mask, values, samples in zip(masks, new, (3, 5, 7), strict=True):
            total[mask.index(name)] += samples * values[name][mask.index(name)].astype(np.float64)
            weight[mask.index(name)] += samples
        assert np.allclose(found[name], total / weight, rtol=1e-6, atol=1e-6)


def test_an_update_of_another_model_is_refused() -> None:
    running = RunningMean(Model(cnn4(), random_weights(cnn4(), 0)))
    other = cnn4(classes=11)
    with pytest.raises(MaskError, match="is used with model"):
        running.add(client_update(full_mask(other), random_weights(other, 0), random_weights(other, 1)), 1)
