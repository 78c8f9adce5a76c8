"""What a part changes of the whole, against a slow loop over coordinates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.errors import MaskError
from edgefl.masks import Array, Box, Mask, boxes, changes, gather, leading_channels, random_channels
from edgefl.model_graph import ModelGraph
from examples.networks import cnn4, preresnet18
from tests.masks.test_slicing import held_coordinates
from tests.random_models import masked_models, numbered


def spread(mask: Mask, name: str, part: Array, base: Array, box: Box | None = None, fill: float = 0.0) -> Array:
    """Every change in its place, and `fill` where nothing is held."""
    into = np.full(base[box].shape if box else base.shape, fill, np.float32)
    for block, change in changes(mask, name, part, base, into, weight=2.0, absent=fill, box=box):
        np.copyto(block, change)
    return into


@settings(max_examples=60)
@given(masked_models(), st.integers(1, 40))
def test_changes_lie_where_the_mask_holds_them_whatever_the_box(case: tuple[ModelGraph, Mask], size: int) -> None:
    graph, mask = case
    base = numbered(graph)
    new = {name: array * 3 for name, array in base.items()}
    for name, part in gather(mask, new).items():
        expected = np.full(base[name].shape, np.inf, np.float32)
        for coordinate in held_coordinates(mask, name):
            expected[coordinate] = 2 * (new[name][coordinate] - base[name][coordinate])
        assert np.array_equal(spread(mask, name, part, base[name], fill=np.inf), expected)
        for box in boxes(base[name].shape, size):
            assert np.array_equal(spread(mask, name, part, base[name], box, fill=np.inf), expected[box])


@given(st.lists(st.integers(0, 5), max_size=4).map(tuple), st.integers(1, 30))
def test_boxes_cover_every_entry_once_and_are_small(shape: tuple[int, ...], size: int) -> None:
    seen = np.zeros(shape, int)
    for box in boxes(shape, size):
        assert seen[box].size <= size
        seen[box] += 1
    assert np.all(seen == 1)


@pytest.mark.parametrize("choose", ["leading", "random"])
def test_tensors_of_several_blocks_are_spread_whole(choose: str) -> None:
    graph, name = preresnet18(), "stage3.1.conv1.weight"
    generator = np.random.default_rng(0)
    mask = leading_channels(graph, 0.4) if choose == "leading" else random_channels(graph, 0.4, generator)
    base = generator.standard_normal(graph.tensor[name].shape, dtype=np.float32)
    part = generator.standard_normal(mask.shapes[name], dtype=np.float32)
    expected = np.zeros_like(base)
    expected[mask.index(name)] = 2 * (part - base[mask.index(name)])
    assert np.array_equal(spread(mask, name, part, base), expected)


def test_a_part_of_another_mask_and_a_transposed_sum_are_refused() -> None:
    mask, name = leading_channels(cnn4(), 0.5), "conv2.weight"
    base = numbered(cnn4())[name]
    with pytest.raises(MaskError, match=r"'conv2.weight' has shape .* but the submodel needs"):
        changes(mask, name, base, base, np.zeros_like(base))
    with pytest.raises(ValueError, match="row-major"):
        changes(mask, name, gather(mask, numbered(cnn4()))[name], base, np.zeros(base.shape[::-1]).T)
