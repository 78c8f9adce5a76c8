"""The arithmetic that every scheme shares: whole numbers from fractions, and samples from whole numbers.

A scheme decides how many samples of each label every client gets (a table of clients by labels); `deal` then
draws which ones. Ties are broken by position, and only basic arithmetic is used, so that a seed gives the
same clients on every machine.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["apportion", "deal", "with_at_least_one"]


def apportion(total: int, weights: NDArray[np.float64], most: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
    """Divide `total` things in proportion to the weights, by largest remainders, and none above its `most`.

    What a full place cannot take goes to the places that are furthest below their due. `total` must not be
    above the sum of `most`.
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


def with_at_least_one(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same total with no zero in it: every zero takes one from the largest, which must have it."""
    counts = counts.copy()
    for empty in np.flatnonzero(counts == 0):
        counts[int(np.argmax(counts))] -= 1
        counts[empty] = 1
    return counts


def deal(
    labels: NDArray[np.int64], values: NDArray[np.int64], table: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """The client of every sample, drawn so that client i gets `table[i, j]` samples labelled `values[j]`."""
    client_of = np.empty(len(labels), dtype=np.int64)
    clients = np.arange(len(table))
    for column, value in enumerate(values):
        members = rng.permutation(np.flatnonzero(labels == value))
        client_of[members] = np.repeat(clients, table[:, column])
    return client_of
