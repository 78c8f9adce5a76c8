"""Sums in a fixed order, in double precision: the same bits in every language and on every processor.

numpy adds pairwise and BLAS in blocks, in orders that depend on version and processor. Where the result of a rule
depends on a sum, it is one of these. docs/rules.md specifies them for other clients.
"""

import math
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from edgefl.masks import Array, BoolArray, IndexArray

__all__ = ["LANES", "mean_of", "squares_by_bin", "sum_by_bin", "sum_of_squares"]

LANES = 64
_BLOCK = 256 * LANES
"""The number of entries per block, whole rows of lanes: their double form fits a small processor's cache."""

Doubles = npt.NDArray[np.float64]


def sum_of_squares(array: Array, held: BoolArray | None = None) -> float:
    """Return the sum of squares in 64 lanes; entries that are not held count as 0.

    Lane k is the sum of the entries i with i % 64 = k, one after the other. Then lanes 0 to 63 are added in this order.
    """
    flat = array.reshape(-1)
    flags = None if held is None else held.reshape(-1)
    lanes = np.zeros(LANES)
    scratch = np.empty(min(flat.size, _BLOCK))
    for begin in range(0, flat.size, _BLOCK):
        squares = scratch[: min(_BLOCK, flat.size - begin)]
        np.copyto(squares, flat[begin : begin + _BLOCK])
        squares *= squares
        if flags is not None:
            squares[~flags[begin : begin + _BLOCK]] = 0
        _add_to_lanes(lanes, squares)
    return _total(lanes.tolist())


def _add_to_lanes(lanes: Doubles, numbers: Doubles) -> None:
    """Add numbers to their lanes; a sum over the outer axis adds row after row. `numbers` are overwritten."""
    whole = numbers.size - numbers.size % LANES
    if whole:
        rows = numbers[:whole].reshape(-1, LANES)
        rows[0] += lanes
        np.add.reduce(rows, axis=0, out=lanes)
    rest = numbers[whole:]
    lanes[: rest.size] += rest


def sum_by_bin(array: Array, axis: int, bins: IndexArray, totals: Doubles) -> None:
    """Add every entry to the total of its bin, one after the other in row-major order.

    `bins` has a bin for every index along `axis`, or -1 for indices that count nowhere. Totals of 0 are the start.
    """
    _add_by_bin(array, axis, bins, totals, square=False)


def squares_by_bin(array: Array, axis: int, bins: IndexArray, totals: Doubles) -> None:
    """Add the square of every entry to the total of its bin, as `sum_by_bin` does."""
    _add_by_bin(array, axis, bins, totals, square=True)


def _add_by_bin(array: Array, axis: int, bins: IndexArray, totals: Doubles, *, square: bool) -> None:
    flat, after = array.reshape(-1), math.prod(array.shape[axis + 1 :])
    own = np.arange(totals.size + 1)
    for begin, places in _places(bins, after, flat.size):
        block = flat[begin : begin + places.size].astype(np.float64)
        if square:
            block *= block
        # bincount adds weights in their order; the totals so far come first, so blocks do not show.
        weights = np.concatenate([[0.0], totals, block])
        totals[:] = np.bincount(np.concatenate([own, places]), weights, totals.size + 1)[1:]


def _places(bins: IndexArray, after: int, size: int) -> Iterator[tuple[int, IndexArray]]:
    """Yield (position, bin + 1 of each of the next entries) in blocks; bin 0 takes what counts nowhere."""
    slab = bins.size * after
    if slab <= _BLOCK:
        places = np.tile(np.repeat(bins + 1, after), _BLOCK // max(slab, 1))
        for begin in range(0, size, max(places.size, 1)):
            yield begin, places[: size - begin]
        return
    for start in range(0, size, slab):
        for begin in range(0, slab, _BLOCK):
            end = min(begin + _BLOCK, slab)
            first = begin // after
            covering = np.repeat(bins[first : -(-end // after)] + 1, after)
            yield start + begin, covering[begin - first * after : end - first * after]


def mean_of(numbers: Iterable[float]) -> float:
    """Return the mean of numbers added one after the other. (Python's `sum` compensates since 3.12.)"""
    known = list(numbers)
    return _total(known) / len(known)


def _total(numbers: Iterable[float]) -> float:
    total = 0.0
    for number in numbers:
        total += number
    return total
