"""Random entries of an update: both ends draw the same ones from the seed, so only their values travel.

Konecny et al., "Federated Learning: Strategies for Improving Communication Efficiency", 2016: subsampling, one of their
sketched updates. Of n entries exactly k are sent, every set of k being equally likely, so each entry is sent with
probability k / n, and

    u n / k  where an entry was sent, else 0

is an unbiased update. Its variance grows with n / k; without the factor there is less variance, and a bias towards
zero: the model then moves k / n of the way.

Randomness: entry i is sent if word i of the stream derive(seed, "subsample", tensor) is among the k lowest.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgefl.local_rules.compression.compressor import FloatArray, checked_update, dense_in
from edgefl.local_rules.compression.top_k import kept_count
from edgefl.local_rules.ranking import lowest
from edgefl.masks import Array, BoolArray
from edgefl.noise import bits, derive
from edgefl.wire import Dense, Expected, Payload

__all__ = ["RandomSubsample"]


@dataclass(frozen=True, slots=True)
class RandomSubsample:
    """A share of the entries of each tensor, chosen by the seed."""

    name: ClassVar[str] = "random_subsample"
    fraction: float = 0.03
    """The share of a tensor's entries that is sent; at least one is."""
    unbiased: bool = True
    """Whether the sent entries are scaled up to make up for the others."""

    def compress(self, tensor: str, update: Array, seed: int) -> dict[str, Payload]:
        """Take the entries that the seed selects."""
        flat = checked_update(tensor, update)
        return {tensor: Dense(flat[self._chosen(tensor, flat.size, seed)])}

    def expected(self, tensor: str, shape: tuple[int, ...]) -> dict[str, Expected]:
        """Return the form of the values."""
        return {tensor: Expected((kept_count(math.prod(shape), self.fraction),), Dense.codec, "float32")}

    def check(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...]) -> None:
        """Accept any values."""

    def expand(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...], seed: int) -> FloatArray:
        """Put the values where the seed selects, and zeros elsewhere."""
        size = math.prod(shape)
        values = dense_in(payloads, tensor, kept_count(size, self.fraction))
        update = np.zeros(size, np.float32)
        update[self._chosen(tensor, size, seed)] = values
        if self.unbiased and values.size:
            update *= np.float32(size / values.size)
        return update.reshape(shape)

    def _chosen(self, tensor: str, size: int, seed: int) -> BoolArray:
        return lowest(bits(derive(seed, "subsample", tensor), 0, size), kept_count(size, self.fraction))
