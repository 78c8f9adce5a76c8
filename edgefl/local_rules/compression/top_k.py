"""The largest entries of an update, and their positions.

Aji and Heafield, "Sparse Communication for Distributed Gradient Descent", EMNLP 2017, without the memory of what was
dropped: FedMRN's baseline prunes the update of every round by itself. It keeps 3 %, which is one bit per entry for the
values alone; the positions are sent too, and counted.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgefl.errors import WireFormatError
from edgefl.local_rules.compression.compressor import FloatArray, checked_update, sparse_in
from edgefl.local_rules.ranking import highest
from edgefl.masks import Array
from edgefl.wire import Expected, Payload, Sparse

__all__ = ["TopK", "kept_count"]


@dataclass(frozen=True, slots=True)
class TopK:
    """The entries of the largest magnitude of each tensor, an exact number."""

    name: ClassVar[str] = "top_k"
    fraction: float = 0.03
    """The share of a tensor's entries that is kept; at least one is."""

    def compress(self, tensor: str, update: Array, seed: int) -> dict[str, Payload]:
        """Take the largest entries."""
        whole = checked_update(tensor, update).reshape(update.shape)
        return {tensor: Sparse.where(whole, highest(np.abs(whole), kept_count(whole.size, self.fraction)))}

    def expected(self, tensor: str, shape: tuple[int, ...]) -> dict[str, Expected]:
        """Return the form of the entries."""
        return {tensor: Expected(shape, Sparse.codec, "float32")}

    def check(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...]) -> None:
        """Refuse any other number of entries than is kept."""
        payload, count = payloads.get(tensor), kept_count(math.prod(shape), self.fraction)
        if isinstance(payload, Sparse) and payload.values.size != count:
            raise WireFormatError(
                f"tensor {tensor!r} has {payload.values.size} entries, but {count} are kept",
                fix="Send the share of entries that the plan names.",
            )

    def expand(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...], seed: int) -> FloatArray:
        """Return the entries, with zeros elsewhere."""
        return sparse_in(payloads, tensor, shape)


def kept_count(size: int, fraction: float) -> int:
    """Return how many of `size` entries a share is, at least one."""
    return min(size, max(1, round(fraction * size)))
