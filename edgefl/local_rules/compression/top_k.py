"""The largest entries of an update, and where they are.

Aji and Heafield, "Sparse Communication for Distributed Gradient Descent", EMNLP 2017, without the memory of what was
dropped: FedMRN's baseline prunes the update of every round by itself. It keeps 3 %, which is one bit an entry for the
values alone; the positions are sent too, and counted.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgefl.errors import WireFormatError
from edgefl.local_rules.compression.compressor import FloatArray, checked, sparse_in
from edgefl.local_rules.ranking import highest
from edgefl.masks import Array
from edgefl.wire import Expected, Payload, Sparse

__all__ = ["TopK", "kept_of"]


@dataclass(frozen=True, slots=True)
class TopK:
    """The entries of the largest magnitude of each tensor, exactly."""

    name: ClassVar[str] = "top_k"
    fraction: float = 0.03
    """The share of a tensor's entries that is kept; at least one is."""

    def kept(self, size: int) -> int:
        """Return how many of so many entries are kept."""
        return kept_of(size, self.fraction)

    def compress(self, tensor: str, update: Array, seed: int) -> dict[str, Payload]:
        """Take the largest entries."""
        whole = checked(tensor, update).reshape(update.shape)
        return {tensor: Sparse.where(whole, highest(np.abs(whole), self.kept(whole.size)))}

    def expected(self, tensor: str, shape: tuple[int, ...]) -> dict[str, Expected]:
        """Return the form of the entries."""
        return {tensor: Expected(shape, Sparse.codec, "float32")}

    def check(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...]) -> None:
        """Refuse more entries than are kept, or fewer."""
        payload, count = payloads.get(tensor), self.kept(math.prod(shape))
        if isinstance(payload, Sparse) and payload.values.size != count:
            raise WireFormatError(
                f"tensor {tensor!r} has {payload.values.size} entries, and {count} are kept",
                fix="Send as many as the plan's share says.",
            )

    def expand(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...], seed: int) -> FloatArray:
        """Return the entries, and zeros around them."""
        return sparse_in(payloads, tensor, shape)


def kept_of(size: int, fraction: float) -> int:
    """Return how many of so many entries a share is: at least one."""
    return min(size, max(1, round(fraction * size)))
