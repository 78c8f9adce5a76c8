import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.errors import MaskError
from edgefl.masks import Mask, full_mask, gather, holders, overlap, scatter, union
from edgefl.model_graph import ModelGraph
from examples.networks import cnn4
from tests.random_models import masks, model_graphs, numbered


@st.composite
def fleets(draw: st.DrawFn) -> tuple[ModelGraph, list[Mask]]:
    graph = draw(model_graphs())
    return graph, draw(st.lists(masks(graph), min_size=1, max_size=4))


def holds(mask: Mask, name: str) -> "np.typing.NDArray[np.bool_]":
    """Where a mask holds a tensor: the obvious way, by scattering ones into zeros."""
    shapes = {tensor.name: tensor.shape for tensor in mask.graph.tensors}
    ones = {key: np.ones(shape) for key, shape in shapes.items()}
    zeros = {key: np.zeros(shape) for key, shape in shapes.items()}
    return np.asarray(scatter(mask, gather(mask, ones), zeros)[name] == 1)


@settings(deadline=None)
@given(fleets(), st.booleans())
def test_holders_count_the_masks_that_hold_each_coordinate(
    fleet: tuple[ModelGraph, list[Mask]], trained_only: bool
) -> None:
    graph, several = fleet
    counts = holders(several, trained_only=trained_only)
    shared = overlap(several, trained_only=trained_only)
    for tensor in graph.tensors:
        expected = np.zeros(tensor.shape, np.int32)
        for mask in several:
            if not trained_only or tensor.name in mask.trained_tensors:
                expected += holds(mask, tensor.name)
        assert np.array_equal(counts[tensor.name], expected)
        assert np.array_equal(shared[tensor.name], expected == len(several))


@settings(deadline=None)
@given(fleets())
def test_a_union_contains_every_mask(fleet: tuple[ModelGraph, list[Mask]]) -> None:
    graph, several = fleet
    together = union(several)
    assert together.trained == frozenset().union(*(mask.trained for mask in several))
    for tensor in graph.tensors:
        covered = np.logical_or.reduce([holds(mask, tensor.name) for mask in several])
        assert np.all(holds(together, tensor.name)[covered])


@given(fleets())
def test_a_union_of_equal_masks_is_the_mask(fleet: tuple[ModelGraph, list[Mask]]) -> None:
    mask = fleet[1][0]
    assert union([mask, mask, mask]).digest == mask.digest


def test_a_union_of_channels_by_hand() -> None:
    graph = cnn4()
    one = Mask.of(graph, trained=["conv1"], kept={"conv1": [0, 1], "conv2": [5]})
    two = Mask.of(graph, trained=["head"], kept={"conv1": [1, 9], "conv2": [6]})
    together = union([one, two])
    assert together.trained == {"conv1", "head"}
    assert together.kept["conv1"].tolist() == [0, 1, 9]
    assert together.kept["conv2"].tolist() == [5, 6]
    assert holders([one, two])["conv2.weight"][:, :, 0, 0].sum() == 4
    assert np.argwhere(overlap([one, two])["conv1.weight"])[:, 0].tolist() == [1] * 9


def test_a_union_fills_up_to_what_the_norm_divides() -> None:
    graph = cnn4(norm_groups=4)
    one = Mask.of(graph, kept={"conv1": [0, 1, 2, 8]})
    two = Mask.of(graph, kept={"conv1": [0, 1, 2, 9]})
    assert union([one, two]).kept["conv1"].tolist() == [0, 1, 2, 3, 4, 5, 8, 9]


def test_averaging_by_holders_keeps_what_nobody_held() -> None:
    graph = cnn4()
    one = Mask.of(graph, kept={"conv1": [0, 1]})
    two = Mask.of(graph, kept={"conv1": [1, 2]})
    weights = numbered(graph)
    zeros = {name: np.zeros_like(array) for name, array in weights.items()}
    parts = [{name: array * 2 for name, array in gather(mask, weights).items()} for mask in (one, two)]
    sums = [scatter(mask, part, zeros)["conv1.weight"] for mask, part in zip((one, two), parts, strict=True)]
    counts = holders([one, two])["conv1.weight"]
    average = np.where(counts > 0, sum(sums) / np.maximum(counts, 1), weights["conv1.weight"])
    assert np.array_equal(average[:3], 2 * weights["conv1.weight"][:3])
    assert np.array_equal(average[3:], weights["conv1.weight"][3:])


def test_masks_of_different_models_do_not_combine() -> None:
    with pytest.raises(MaskError, match="digests must be equal"):
        holders([full_mask(cnn4()), full_mask(cnn4(classes=11))])
    with pytest.raises(MaskError, match="at least one"):
        union([])
