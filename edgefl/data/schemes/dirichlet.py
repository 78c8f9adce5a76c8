"""`dirichlet:ALPHA`: each label is spread over the clients in Dirichlet proportions.

Label by label, as in FedMRN (section 5.1.2, Non-IID-1) and Hsu et al. 2019: the smaller alpha, the fewer clients have
most of a label. A draw that leaves a client with too few samples is repeated; after some tries the best draw is
repaired instead, so that this terminates for every alpha.
"""

import numpy as np
from numpy.typing import NDArray

from edgefl.data.schemes.apportionment import apportion, deal
from edgefl.errors import DataError

__all__ = ["dirichlet", "sensible_minimum", "LEAST_ALPHA", "MOST_ALPHA"]

# At these limits the draw is numerically one client per label, or even; beyond them gamma draws under- or overflow.
LEAST_ALPHA = 1e-3
MOST_ALPHA = 1e6

TRIES = 20


def sensible_minimum(samples: int, clients: int) -> int:
    """Return a tenth of the average client, but at least 1 sample and at most 10 (as in NIID-bench)."""
    return max(1, min(10, samples // (10 * clients)))


def dirichlet(
    labels: NDArray[np.int64],
    clients: int,
    alpha: float,
    rng: np.random.Generator,
    minimum: int | None = None,
) -> NDArray[np.int64]:
    """Return the client of every sample; no client has fewer than `minimum` samples."""
    least = sensible_minimum(len(labels), clients) if minimum is None else minimum
    if least < 1 or least * clients > len(labels):
        raise DataError(
            f"{clients} clients with at least {least} samples each cannot share {len(labels)} samples",
            fix=f"Use a minimum from 1 to {len(labels) // clients}, or fewer clients",
        )
    values, sizes = np.unique(labels, return_counts=True)
    best = _draw(sizes, clients, alpha, rng)
    for _ in range(TRIES - 1):
        if int(best.sum(axis=1).min()) >= least:
            break
        table = _draw(sizes, clients, alpha, rng)
        if table.sum(axis=1).min() > best.sum(axis=1).min():
            best = table
    return deal(labels, values, _repaired(best, least), rng)


def _draw(sizes: NDArray[np.int64], clients: int, alpha: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one table of clients by labels, whose columns add up to the sizes of the labels."""
    shares = rng.dirichlet(np.full(clients, alpha), size=len(sizes))
    return np.stack([apportion(int(size), share) for size, share in zip(sizes, shares, strict=True)], axis=1)


def _repaired(table: NDArray[np.int64], least: int) -> NDArray[np.int64]:
    """Bring small clients up to the minimum with samples of the largest client's most common label."""
    table = table.copy()
    sizes = table.sum(axis=1)
    for poor in np.flatnonzero(sizes < least):
        while sizes[poor] < least:
            rich = int(np.argmax(sizes))
            label = int(np.argmax(table[rich]))
            gift = min(least - sizes[poor], table[rich, label], sizes[rich] - least)
            table[rich, label] -= gift
            table[poor, label] += gift
            sizes[rich] -= gift
            sizes[poor] += gift
    return table
