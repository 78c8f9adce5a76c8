"""The two schemes that do not look at labels: IID, and by owner."""

import numpy as np
from numpy.typing import NDArray

from edgefl.errors import DataError

__all__ = ["iid", "by_owner"]


def iid(samples: int, clients: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The same number of random samples for every client, give or take one."""
    client_of = np.empty(samples, dtype=np.int64)
    client_of[rng.permutation(samples)] = np.arange(samples) % clients
    return client_of


def by_owner(owners: NDArray[np.int64] | None, clients: int | None, rng: np.random.Generator) -> NDArray[np.int64]:
    """One client an owner, in the order of their ids; with fewer clients, owners share one, unsplit.

    Owners that share are grouped so that clients are of similar size: the largest owner left, equal ones in
    random order, always goes to the smallest client so far.
    """
    if owners is None:
        raise DataError(
            "These samples have no owners to divide them by",
            fix="Use a set that has them (har, shakespeare, an .npz with 'owners') or another scheme",
        )
    _, owner_of, sizes = np.unique(owners, return_inverse=True, return_counts=True)
    owner_of = owner_of.reshape(-1).astype(np.int64)
    if clients is None or clients == len(sizes):
        return owner_of
    if clients > len(sizes):
        raise DataError(
            f"{clients} clients are more than the {len(sizes)} owners of the training samples",
            fix=f"Ask for at most {len(sizes)} clients, or for no number to get one client an owner",
        )
    shuffled = rng.permutation(len(sizes))
    client_of_owner = np.empty(len(sizes), dtype=np.int64)
    load = np.zeros(clients, dtype=np.int64)
    for owner in shuffled[np.argsort(-sizes[shuffled], kind="stable")]:
        client = int(np.argmin(load))
        client_of_owner[owner] = client
        load[client] += sizes[owner]
    return client_of_owner[owner_of]
