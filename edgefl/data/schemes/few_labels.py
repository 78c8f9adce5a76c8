"""`labels:K`: each client has K labels, and a label is divided evenly among the clients that have it.

FedMRN's Non-IID-2 (section 5.1.2: 3 random labels per client, 20 for CIFAR-100) and PerFedMask's setting. Labels are
drawn at random under three rules: no client draws one twice, every label has a holder, and labels have holders as
evenly as possible, where a rare label has no more holders than samples.
"""

import numpy as np
from numpy.typing import NDArray

from edgefl.data.schemes.apportionment import apportion, deal
from edgefl.errors import DataError

__all__ = ["few_labels"]


def few_labels(labels: NDArray[np.int64], clients: int, k: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the client of every sample; every client has samples of exactly k labels."""
    values, sizes = np.unique(labels, return_counts=True)
    holds = _draw_holders(sizes, clients, k, rng)
    columns = [apportion(int(size), held.astype(np.float64)) for size, held in zip(sizes, holds.T, strict=True)]
    return deal(labels, values, np.stack(columns, axis=1), rng)


def _draw_holders(sizes: NDArray[np.int64], clients: int, k: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which client has which label: k per row, balanced columns.

    Client by client, labels are drawn weighted by the number of holders each still lacks. A label that lacks as many
    holders as there are clients left must be taken, so the draw never reaches a dead end.
    """
    _check(sizes, clients, k)
    lacking = _holders_a_label(np.minimum(sizes, clients), clients * k, rng)
    holds = np.zeros((clients, len(sizes)), dtype=np.bool_)
    for client in range(clients):
        chosen = lacking == clients - client
        free = np.where(chosen, 0, lacking)
        wanted = k - int(chosen.sum())
        if wanted:
            chosen[rng.choice(len(sizes), size=wanted, replace=False, p=free / free.sum())] = True
        holds[client] = chosen
        lacking = lacking - chosen
    return holds


def _holders_a_label(most: NDArray[np.int64], total: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Divide `total` as evenly as the limits allow; who gets one more is random."""
    holders = np.zeros(len(most), dtype=np.int64)
    while (left := total - int(holders.sum())) > 0:
        open_labels = np.flatnonzero(holders < most)
        if left < len(open_labels):
            holders[rng.permutation(open_labels)[:left]] += 1
        else:
            share = left // len(open_labels)
            holders[open_labels] += np.minimum(share, (most - holders)[open_labels])
    return holders


def _check(sizes: NDArray[np.int64], clients: int, k: int) -> None:
    if not 1 <= k <= len(sizes):
        raise DataError(f"{k} labels per client cannot be drawn from {len(sizes)} labels", fix=f"Use 1 to {len(sizes)}")
    if clients * k < len(sizes):
        raise DataError(
            f"{clients} clients with {k} labels each cannot cover {len(sizes)} labels",
            fix=f"Use at least {-(-len(sizes) // k)} clients, or {-(-len(sizes) // clients)} labels each",
        )
    places = int(np.minimum(sizes, clients).sum())
    if clients * k > places:
        raise DataError(
            f"{clients} clients with {k} labels each need {clients * k} pairs of a client and a label, "
            f"each with a sample, but the labels have samples for {places}",
            fix=f"Use fewer clients, or at most {max(1, places // clients)} labels per client",
        )
