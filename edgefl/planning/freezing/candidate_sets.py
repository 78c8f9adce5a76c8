"""The sets of blocks to choose from: all of them in a small model, a good selection in a large one.

A model of up to 14 blocks has at most 16,384 sets, and a planner that knows them all can prove which is best. In a
larger model, sets are filled block by block in many orders: from either end, largest first after each block, at random.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from edgefl.planning.freezing.bias import Flags

__all__ = ["MOST_BLOCKS", "Integers", "best_sums", "every_set", "filled_sets"]

MOST_BLOCKS = 14
"""The largest number of blocks for which every set is considered."""
_MOST_BITS = 1 << 28
"""The largest sum of sizes whose subsets are counted exactly: 32 MB of bits."""

Integers = npt.NDArray[np.int64]


def every_set(blocks: int) -> Flags:
    """Return all sets but the empty one, one row per set."""
    sets: Flags = (np.arange(1, 1 << blocks)[:, None] >> np.arange(blocks)) % 2 == 1
    return sets


def filled_sets(
    sizes: Integers, fits: Callable[[Flags], Flags], generator: np.random.Generator, *, random: int
) -> Flags:
    """Return sets that fit and that no further block fits into, without duplicates.

    `fits` tells it for each row of flags. It must not accept a set and reject a subset of it.
    """
    orders = _orders(sizes, generator, random=random)
    sets, rows = np.zeros(orders.shape, np.bool_), np.arange(len(orders))
    for block in orders.T:
        tried = sets.copy()
        tried[rows, block] = True
        sets = np.where(fits(tried)[:, None], tried, sets)
    return np.unique(sets[sets.any(axis=1)], axis=0)


def _orders(sizes: Integers, generator: np.random.Generator, *, random: int) -> Integers:
    """Return orders in which to try the blocks, one row per order."""
    count = sizes.size
    large_first = np.argsort(-sizes, kind="stable")
    orders = [np.arange(count)[::-1]]
    for block in range(count):
        rest = large_first[large_first != block]
        orders += [np.concatenate([[block], rest]), np.roll(np.arange(count), -block)]
    orders += [generator.permutation(count) for _ in range(random)]
    return np.stack(orders)


def best_sums(sizes: Integers, limits: Integers) -> Flags | None:
    """Return for each limit the set with the largest sum of sizes within it; None if the sizes are too large to tell.

    The sums that subsets can have are the bits of one long integer: adding a block shifts it.
    """
    unit = int(np.gcd.reduce(sizes))
    units = [int(size) // unit for size in sizes]
    if sum(units) > _MOST_BITS // max(1, len(units)):
        return None
    reached = [1]
    for size in units:
        reached.append(reached[-1] | reached[-1] << size)
    tables = [number.to_bytes(number.bit_length() // 8 + 1, "little") for number in reached]
    sets = np.zeros((limits.size, sizes.size), np.bool_)
    for row, limit in enumerate(limits):
        rest = (reached[-1] & ((1 << (int(limit) // unit + 1)) - 1)).bit_length() - 1
        for block in range(sizes.size - 1, -1, -1):
            if not _bit(tables[block], rest):
                sets[row, block] = True
                rest -= units[block]
    return sets


def _bit(table: bytes, position: int) -> bool:
    return position < 8 * len(table) and bool(table[position >> 3] >> (position & 7) & 1)
