"""Gather and scatter against a slow, obvious loop over coordinates."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from edgefl.errors import MaskError
from edgefl.masks import Mask, add_at, full_mask, gather, leading_channels, scatter
from edgefl.model_graph import GraphBuilder, ModelGraph
from examples.networks import cnn4
from tests.random_models import masked_models, numbered


def channel_of(graph: ModelGraph, tensor: str, axis: int, index: int) -> tuple[str, int] | None:
    """Which group and channel an index of an axis belongs to, straight from the definition of a span."""
    for group in graph.groups:
        for span in group.spans:
            if (span.tensor, span.axis) != (tensor, axis):
                continue
            for c, s, j in itertools.product(range(group.width), range(span.stacks), range(span.repeat)):
                if span.offset + s * span.stride + c * span.repeat + j == index:
                    return group.name, c
    return None


def is_kept(mask: Mask, tensor: str, axis: int, index: int) -> bool:
    found = channel_of(mask.graph, tensor, axis, index)
    return found is None or found[1] in mask.kept[found[0]]


def kept_coordinates(mask: Mask, tensor: str) -> list[tuple[int, ...]]:
    shape = mask.graph.tensor[tensor].shape
    axes = [[i for i in range(size) if is_kept(mask, tensor, axis, i)] for axis, size in enumerate(shape)]
    return list(itertools.product(*axes))


def held_coordinates(mask: Mask, tensor: str) -> list[tuple[int, ...]]:
    coordinates = kept_coordinates(mask, tensor)
    if tensor not in mask.held:
        return coordinates
    return [c for c, flag in zip(coordinates, mask.held[tensor].ravel(), strict=True) if flag]


@settings(deadline=None)
@given(masked_models())
def test_gather_takes_the_kept_entries_in_order(case: tuple[ModelGraph, Mask]) -> None:
    graph, mask = case
    weights = numbered(graph)
    for name, part in gather(mask, weights).items():
        held = set(held_coordinates(mask, name))
        expected = [weights[name][c] if c in held else 0 for c in kept_coordinates(mask, name)]
        assert part.ravel().tolist() == expected
        assert part.shape == mask.shapes[name]


@settings(deadline=None)
@given(masked_models())
def test_gather_then_scatter_gives_back_the_kept_entries_and_nothing_else(case: tuple[ModelGraph, Mask]) -> None:
    graph, mask = case
    weights = numbered(graph)
    nothing: dict[str, Any] = {name: np.full_like(array, -1) for name, array in weights.items()}
    result = scatter(mask, gather(mask, weights), nothing)
    for name, array in result.items():
        expected = np.full_like(array, -1)
        for coordinate in held_coordinates(mask, name):
            expected[coordinate] = weights[name][coordinate]
        assert np.array_equal(array, expected)
        assert np.all(nothing[name] == -1)


@given(masked_models())
def test_scatter_of_an_unchanged_submodel_changes_nothing(case: tuple[ModelGraph, Mask]) -> None:
    graph, mask = case
    weights = numbered(graph)
    result = scatter(mask, gather(mask, weights), weights)
    assert all(np.array_equal(result[name], weights[name]) for name in weights)


def test_one_channel_of_each_layout_by_hand() -> None:
    build = GraphBuilder("layouts", channels=1, positions=2)
    left = build.conv("left", build.input, 2, kernel=1, positions=2)
    right = build.conv("right", build.input, 3, kernel=1, positions=2)
    flat = build.flatten(build.concat(left, right))
    recurrent = build.lstm("lstm", flat, 2)
    build.linear("head", recurrent, 1, head=True)
    mask = Mask.of(build.finish(), kept={"left": [1], "right": [0, 2], "lstm": [1]})
    part = gather(mask, numbered(mask.graph))
    # Flattened inputs: left takes indices 0..3, two a channel; right takes 4..9. Kept: 2,3 | 4,5 | 8,9.
    # Gates: four stacks of two; the second of each is kept: rows 1, 3, 5, 7.
    weights = numbered(mask.graph)["lstm.weight_ih"]
    assert np.array_equal(part["lstm.weight_ih"], weights[[1, 3, 5, 7]][:, [2, 3, 4, 5, 8, 9]])
    assert np.array_equal(part["lstm.weight_hh"], numbered(mask.graph)["lstm.weight_hh"][[1, 3, 5, 7]][:, [1]])


def test_a_trained_part_can_be_gathered_and_scattered_alone() -> None:
    graph = cnn4()
    mask = Mask.of(graph, trained=["conv4", "head"], kept={"conv3": range(64)})
    weights = numbered(graph)
    part = gather(mask, weights, mask.trained_tensors)
    assert sorted(part) == ["conv4.weight", "head.weight"]
    result = scatter(mask, {name: -array for name, array in part.items()}, weights)
    assert result["conv1.weight"] is weights["conv1.weight"]
    assert np.all(result["conv4.weight"][:, :64] < 0)
    assert np.all(result["conv4.weight"][:, 64:] > 0)


def test_what_is_gathered_is_a_copy() -> None:
    weights = numbered(cnn4())
    for mask in (full_mask(cnn4()), leading_channels(cnn4(), 0.5)):
        for name, part in gather(mask, weights).items():
            assert not np.shares_memory(part, weights[name])
            assert part.flags.c_contiguous
            assert part.flags.writeable


def test_add_at_makes_running_sums() -> None:
    graph = cnn4()
    mask = leading_channels(graph, 0.5)
    total = np.zeros(graph.tensor["conv2.weight"].shape)
    for _ in range(3):
        add_at(mask, "conv2.weight", total, np.full(mask.shapes["conv2.weight"], 2.0))
    assert total.sum() == 6 * 32 * 16 * 9
    assert np.all(total[:32, :16] == 6)


def test_weights_of_another_model_are_refused() -> None:
    mask = leading_channels(cnn4(), 0.5)
    weights = numbered(cnn4())
    with pytest.raises(MaskError, match=r"'head.weight' has shape \(11, 256\).*\(10, 256\)"):
        gather(mask, numbered(cnn4(classes=11)))
    with pytest.raises(MaskError, match=r"'conv1.weight' is missing"):
        gather(mask, {})
    with pytest.raises(MaskError, match="no tensor 'conv9'"):
        gather(mask, weights, ["conv9"])
    with pytest.raises(MaskError, match="the submodel needs"):
        scatter(mask, weights, weights)
    with pytest.raises(MaskError, match="no tensor 'conv9'"):
        scatter(mask, {"conv9": np.zeros(3)}, weights)


def test_add_at_leaves_alone_what_is_not_held_and_checks_shapes() -> None:
    graph = cnn4()
    held = np.arange(2560).reshape(10, 256) % 2 == 0
    mask = Mask.of(graph, held={"head.weight": held})
    total = np.zeros((10, 256))
    add_at(mask, "head.weight", total, np.ones((10, 256)))
    assert np.array_equal(total, held)
    with pytest.raises(MaskError, match=r"\(1,\), but the submodel needs \(10, 256\)"):
        add_at(mask, "head.weight", total, np.ones(1))
