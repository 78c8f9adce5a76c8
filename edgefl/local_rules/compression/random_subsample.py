"""Random entries of an update: both ends draw the same ones from the seed, so only their values travel.

Konecny et al., "Federated Learning: Strategies for Improving Communication Efficiency", 2016: subsampling, one of their
sketched updates. Of n entries exactly k are sent, every set of k being as likely as any other, so each entry is sent
with probability k / n, and

    u n / k  where an entry was sent, else 0

is an update of the right expectation. Its variance grows with n / k; without the factor there is less of it, and a bias
towards zero: the model then moves k / n of the way.

Chance: entry i is sent if word i of the stream derive(seed, "subsample", tensor) is among the k lowest.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgefl.local_rules.compression.compressor import FloatArray, checked, dense_in
from edgefl.local_rules.compression.top_k import kept_of
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
    """Whether what was sent is scaled up for what was not."""

    def compress(self, tensor: str, update: Array, seed: int) -> dict[str, Payload]:
        """Take the entries that the seed names."""
        flat = checked(tensor, update)
        return {tensor: Dense(flat[self._chosen(tensor, flat.size, seed)])}

    def expected(self, tensor: str, shape: tuple[int, ...]) -> dict[str, Expected]:
        """Return the form of the values."""
        return {tensor: Expected((kept_of(math.prod(shape), self.fraction),), Dense.codec, "float32")}

    def check(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...]) -> None:
        """Refuse nothing: any values can be those of an update."""

    def expand(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...], seed: int) -> FloatArray:
        """Put the values where the seed says, and zeros around them."""
        size = math.prod(shape)
        values = dense_in(payloads, tensor, kept_of(size, self.fraction))
        update = np.zeros(size, np.float32)
        update[self._chosen(tensor, size, seed)] = values
        if self.unbiased and values.size:
            update *= np.float32(size / values.size)
        return update.reshape(shape)

    def _chosen(self, tensor: str, size: int, seed: int) -> BoolArray:
        return lowest(bits(derive(seed, "subsample", tensor), 0, size), kept_of(size, self.fraction))
