"""Sums follow their specification, entry by entry, whatever numpy does."""

import math

import numpy as np
import pytest

from edgefl.local_rules.summation import mean_of, squares_by_bin, sum_by_bin, sum_of_squares


def numbers(*shape: int) -> "np.typing.NDArray[np.float32]":
    """Numbers of many sizes, so that every other order of addition gives another sum."""
    generator = np.random.default_rng(math.prod(shape))
    return (generator.standard_normal(shape) * 10 ** generator.uniform(-6, 6, shape)).astype(np.float32)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 5000, 16_384, 16_385, 40_001])
@pytest.mark.parametrize("with_held", [False, True])
def test_squares_are_added_in_64_lanes(size: int, with_held: bool) -> None:
    array = numbers(size)
    held = np.arange(size) % 3 != 1
    lanes = [0.0] * 64
    for index, value in enumerate(array.tolist()):
        lanes[index % 64] += value * value if held[index] or not with_held else 0.0
    expected = 0.0
    for lane in lanes:
        expected += lane
    assert sum_of_squares(array, held if with_held else None) == expected


def test_what_is_not_held_counts_as_nothing_even_if_it_is_not_finite() -> None:
    assert sum_of_squares(np.array([3, np.inf, np.nan], np.float32), np.array([True, False, False])) == 9


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((7, 5), 0), ((7, 5), 1), ((300, 40, 3, 3), 0), ((300, 40, 3, 3), 1), ((3, 20_000), 0), ((4,), 0)],
)
def test_bins_are_added_in_row_major_order(shape: tuple[int, ...], axis: int) -> None:
    array = numbers(*shape)
    bins = np.arange(shape[axis]) % 3 - 1
    found, squared = np.array([0.5, 0.0]), np.array([0.5, 0.0])
    sum_by_bin(array, axis, bins, found)
    squares_by_bin(array, axis, bins, squared)
    expected = ([0.5, 0.0], [0.5, 0.0])
    for index, value in zip(np.ndindex(*shape), array.reshape(-1).tolist(), strict=True):
        bin_ = int(bins[index[axis]])
        if bin_ >= 0:
            expected[0][bin_] += value
            expected[1][bin_] += value * value
    assert (found.tolist(), squared.tolist()) == expected


def test_the_mean_is_not_compensated() -> None:
    assert mean_of([1e16, 1.0, 1.0, -1e16]) == 0.0  # a compensated sum would be 2
    assert mean_of([0.1] * 10) == 0.9999999999999999 / 10
