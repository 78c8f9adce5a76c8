"""The largest entries of an update, and where they are.

Aji and Heafield, "Sparse Communication for Distributed Gradient Descent", EMNLP 2017, without the memory of what was
dropped: FedMRN's baseline prunes the update of every round by itself. It keeps 3 %, which is one bit an entry for the
values alone; the positions are sent too, and counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgefl.local_rules.compression.compressor import FloatArray, checked, sparse_in
from edgefl.local_rules.selection import highest
from edgefl.masks import Array
from edgefl.wire import Payload, Sparse

__all__ = ["TopK"]


@dataclass(frozen=True, slots=True)
class TopK:
    """The entries of the largest magnitude of each tensor, exactly."""

    name: ClassVar[str] = "top_k"
    fraction: float = 0.03
    """The share of a tensor's entries that is kept; at least one is."""

    def kept(self, size: int) -> int:
        """Return how many of so many entries are kept."""
        return min(size, max(1, round(self.fraction * size)))

    def compress(self, tensor: str, update: Array, seed: int) -> dict[str, Payload]:
        """Take the largest entries."""
        whole = checked(tensor, update).reshape(update.shape)
        return {tensor: Sparse.where(whole, highest(np.abs(whole), self.kept(whole.size)))}

    def expand(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...], seed: int) -> FloatArray:
        """Return the entries, and zeros around them."""
        return sparse_in(payloads, tensor, shape)
