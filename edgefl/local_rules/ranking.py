"""Chooses the lowest or highest entries of an array: an exact number, the same ones on every machine.

Magnitude pruning, regrowth by gradient, random masks and the top entries of a probabilistic mask are all this one
choice. Its time is linear in the number of entries; sorting would take seconds on a small processor.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.masks import BoolArray
from edgefl.noise import unit

__all__ = ["highest", "lowest"]


def lowest(values: npt.NDArray[Any], count: int, *, seed: int | None = None) -> BoolArray:
    """Return flags of the `count` lowest entries; not-a-number counts as the highest of all.

    Among equal entries the first ones are chosen, or with a `seed` random ones.
    """
    flat = values.reshape(-1)
    count = min(count, flat.size)
    if count <= 0:
        return np.zeros(values.shape, np.bool_)
    bound = np.partition(flat, count - 1)[count - 1]
    chosen: BoolArray = flat < bound
    ties = flat == bound
    if bound != bound:  # not a number: all real numbers are chosen, and some of the others
        ties = np.isnan(flat)
        chosen = ~ties
    lacking = count - int(np.count_nonzero(chosen))
    if seed is None:
        chosen[np.flatnonzero(ties)[:lacking]] = True
    else:
        chosen |= lowest(np.where(ties, unit(seed, 0, flat.size), np.float32(2)), lacking)
    return chosen.reshape(values.shape)


def highest(values: npt.NDArray[np.floating[Any]], count: int, *, seed: int | None = None) -> BoolArray:
    """Return flags of the `count` highest entries; not-a-number counts as the lowest of all."""
    return lowest(-values, count, seed=seed)
