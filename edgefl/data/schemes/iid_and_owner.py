"""`iid` and `owner`: the schemes that ignore labels."""

import numpy as np
from numpy.typing import NDArray

from edgefl.errors import DataError

__all__ = ["iid", "by_owner"]


def iid(samples: int, clients: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Give every client the same number of random samples, give or take one."""
    client_of = np.empty(samples, dtype=np.int64)
    client_of[rng.permutation(samples)] = np.arange(samples) % clients
    return client_of


def by_owner(owners: NDArray[np.int64] | None, clients: int | None, rng: np.random.Generator) -> NDArray[np.int64]:
    """Make one client per owner, in the order of their ids; with fewer clients, several owners share one, unsplit.

    Owners are grouped into clients of similar size: the largest remaining owner, ties in random order, goes to the
    smallest client so far.
    """
    if owners is None:
        raise DataError(
            "These samples have no owners",
            fix="Use a data set with owners (har, shakespeare, an .npz with 'owners') or another scheme",
        )
    _, owner_of, sizes = np.unique(owners, return_inverse=True, return_counts=True)
    owner_of = owner_of.reshape(-1).astype(np.int64)
    if clients is None or clients == len(sizes):
        return owner_of
    if clients > len(sizes):
        raise DataError(
            f"{clients} clients are more than the {len(sizes)} owners of the training samples",
            fix=f"Use at most {len(sizes)} clients, or give no number for one client per owner",
        )
    shuffled = rng.permutation(len(sizes))
    client_of_owner = np.empty(len(sizes), dtype=np.int64)
    load = np.zeros(clients, dtype=np.int64)
    for owner in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        client = int(np.argmin(load))
        client_of_owner[owner] = client
        load[client] += sizes[owner]
    return client_of_owner[owner_of]
