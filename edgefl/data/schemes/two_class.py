"""`two-class:RATE`: each client has two classes, and the smaller is RATE times as large as the larger.

Hermes (section 5.1, and the balance rate of figure 9), made so that every sample is used exactly once.

The number of clients is a multiple of the number of classes, so that they form rings, each a random order of all
classes. Client j of a ring has the j-th class as its large one and the next class as its small one, so a class of s
samples is cut once, into t for the client that has it large and s - t for the client before. With the given rate r,

    s[j+1] - t[j+1] = r * t[j]        around the ring,

which has one solution; rounded, it meets the rate as closely as whole samples can. If it has none (class sizes differ
too much, or r = 1 with different sizes), every class is cut at s / (1 + r), which is exact for classes of equal size.
With any other number of clients no such ring exists and the rate could not be met: that is an error.
"""

import numpy as np
from numpy.typing import NDArray

from edgefl.data.schemes.apportionment import deal
from edgefl.errors import DataError

__all__ = ["two_class"]


def two_class(labels: NDArray[np.int64], clients: int, rate: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the client of every sample; every client has samples of exactly two classes."""
    values, sizes = np.unique(labels, return_counts=True)
    _check(sizes, clients)
    return deal(labels, values, _rings(sizes, clients // len(sizes), rate, rng), rng)


def _check(sizes: NDArray[np.int64], clients: int) -> None:
    classes, fewest = len(sizes), int(sizes.min())
    if classes < 2:
        raise DataError("Two classes per client need more than one class", fix="Use iid")
    if fewest < 2:
        raise DataError(
            "At least two clients share each class, but one class has only one sample",
            fix="Leave that class out, or use labels:2",
        )
    most = fewest // 2 * classes
    if clients % classes or clients > most:
        below = clients // classes * classes
        good = sorted({min(max(number, classes), most) for number in (below, below + classes)})
        raise DataError(
            f"{clients} clients cannot have two classes each at one rate: {classes} classes of at least {fewest} "
            f"samples need a multiple of {classes} clients, at most {most}",
            fix=f"Use {' or '.join(map(str, good))} clients",
        )


def _rings(sizes: NDArray[np.int64], rings: int, rate: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return a table of clients by classes; every `classes` clients are one ring over an even share of every class."""
    classes = len(sizes)
    table = np.zeros((rings * classes, classes), dtype=np.int64)
    for ring in range(rings):
        share = sizes // rings + (ring < sizes % rings)
        order = rng.permutation(classes)
        large = _cuts(share[order], rate)
        small = share[order] - large
        members = ring * classes + np.arange(classes)
        table[members, order] = large
        table[members, np.roll(order, -1)] = np.roll(small, -1)
    return table


def _cuts(share: NDArray[np.int64], rate: float) -> NDArray[np.int64]:
    """Return how many of each class's samples go to the client that has it as its large class."""
    # Once around the ring from t[0] = 0 gives the part of t[0] that does not depend on itself.
    around, power = 0.0, 1.0
    for size in (*share[1:], share[0]):
        around, power = float(size) - rate * around, -rate * power
    cuts = share / (1.0 + rate)
    if 1.0 - power > 1e-9:
        exact = [around / (1.0 - power)]
        for size in share[1:]:
            exact.append(float(size) - rate * exact[-1])
        if all(0 < cut < size for cut, size in zip(exact, share, strict=True)):
            cuts = np.array(exact)
    return np.clip(np.floor(cuts + 0.5).astype(np.int64), 1, share - 1)
