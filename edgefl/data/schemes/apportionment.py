"""Apportionment shared by all schemes: dividing whole numbers in proportion, and drawing the samples.

A scheme decides how many samples of each label every client gets (a table of clients by labels); `deal` then draws
them. Ties are broken by position, and only basic arithmetic is used. All randomness comes from numpy's PCG64
`Generator`, so a seed gives the same clients on every machine as long as numpy does not change the methods of that
class. numpy does not promise that; golden digests in the tests would notice.
"""

import operator

import numpy as np
from numpy.typing import NDArray

from edgefl.errors import DataError

__all__ = ["generator", "apportion", "deal"]


def generator(seed: int) -> np.random.Generator:
    """Return the generator of all randomness in a partition."""
    try:
        if operator.index(seed) >= 0:
            return np.random.Generator(np.random.PCG64(seed))
    except TypeError:
        pass
    raise DataError(f"The seed is {seed!r}", fix="Use a whole number of at least 0")


def apportion(total: int, weights: NDArray[np.float64], most: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Divide `total` in proportion to the weights, by largest remainders, with none above its `most`.

    What a full place cannot take goes to the places furthest below their share. `total` must not exceed the sum of
    `most`.
    """
    due = weights if weights.sum() > 0 else np.ones(len(weights))
    due = total * (due / due.sum())
    limit = np.full(len(due), total, dtype=np.int64) if most is None else most
    counts: NDArray[np.int64] = np.minimum(np.floor(due).astype(np.int64), limit)
    left = total - int(counts.sum())
    while left > 0:
        candidates = np.flatnonzero(counts < limit)
        weighty = candidates[due[candidates] > 0]
        candidates = weighty if len(weighty) else candidates
        most_owed = np.argsort(counts[candidates] - due[candidates], kind="stable")[:left]
        counts[candidates[most_owed]] += 1
        left -= len(most_owed)
    return counts


def deal(
    labels: NDArray[np.int64], values: NDArray[np.int64], table: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return the client of every sample, drawn so that client i gets `table[i, j]` samples labelled `values[j]`."""
    client_of = np.empty(len(labels), dtype=np.int64)
    clients = np.arange(len(table))
    for column, value in enumerate(values):
        members = rng.permutation(np.flatnonzero(labels == value))
        client_of[members] = np.repeat(clients, table[:, column])
    return client_of
