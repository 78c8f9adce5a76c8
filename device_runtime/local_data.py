"""The device's own samples: validation data, and batches in an order that depends only on the plan's seed.

Features stay as they are in their file until a batch is built. The order comes from `edgefl.noise`, so every platform
and every restart draws the same batches.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgefl import noise
from edgefl.data import ClientSplit, Dataset
from edgefl.errors import DataError
from edgefl.local_rules import Batch
from edgefl.masks import Array

__all__ = ["LocalData"]

_READ_AT_ONCE = 2**18
"""Numbers of an epoch that are prepared together: this saves many calls for small samples."""


@dataclass(frozen=True, slots=True, eq=False)
class LocalData:
    """What a device trains and validates on."""

    dataset: Dataset
    split: ClientSplit

    def __post_init__(self) -> None:
        if not len(self.split.train):
            raise DataError("this device has no training samples", fix="Give it training samples.")

    @classmethod
    def whole(cls, dataset: Dataset, *, validation: float = 0.1, seed: int = 0) -> "LocalData":
        """Take all training samples of a data set, and a share of them for validation."""
        if not 0 <= validation < 1:
            raise DataError(
                f"{validation} is not a valid share of validation samples",
                fix="Give a share of at least 0 and below 1.",
            )
        count = len(dataset.train)
        order = _order(noise.derive(seed, "validation"), count)
        held_out = min(round(count * validation), count - 1)
        nothing = np.zeros(0, np.int64)
        return cls(dataset, ClientSplit(order[held_out:], order[:held_out], nothing))

    @property
    def samples(self) -> int:
        """The number of training samples."""
        return len(self.split.train)

    def steps(self, batch_size: int, *, equal: bool = False) -> int:
        """Return the number of batches per epoch; `equal` leaves out a smaller last one."""
        whole, rest = divmod(self.samples, batch_size)
        return whole + (not equal and (rest > 1 or whole == 0))

    def epoch(self, seed: int, epoch: int, batch_size: int, *, equal: bool = False, skip: int = 0) -> Iterator[Batch]:
        """Yield the batches of an epoch, or those after the first `skip`, which are not prepared.

        A last batch of one sample is left out: batch norm cannot standardise it.
        """
        order = self.split.train[_order(noise.derive(seed, "order", epoch), self.samples)]
        steps, network = self.steps(batch_size, equal=equal), noise.derive(seed, "network", epoch)
        together = max(1, _READ_AT_ONCE // max(1, batch_size * int(np.prod(self.dataset.train.features.shape[1:]))))
        for first in range(skip, steps, together):
            end = min(steps, first + together)
            x, y = self.dataset.batch(order[first * batch_size : end * batch_size])
            for step in range(first, end):
                here = slice((step - first) * batch_size, (step - first + 1) * batch_size)
                yield Batch(x[here], y[here], noise.derive(network, step))

    def every(self, seed: int, batch_size: int, *, skip: int = 0) -> Iterator[Batch]:
        """Yield all training samples once, in the order of the first epoch, without the first `skip` batches.

        A last batch of one sample is not left out: nothing is trained.
        """
        order = self.split.train[_order(noise.derive(seed, "order", 0), self.samples)]
        for first in range(skip * batch_size, self.samples, batch_size):
            yield self._batch(order[first : first + batch_size], 0)

    def extra_batch(self, seed: int, batch_size: int) -> Batch:
        """Return one more batch of training samples, for rules that need a last gradient."""
        order = _order(noise.derive(seed, "extra"), self.samples)[:batch_size]
        return self._batch(self.split.train[order], noise.derive(seed, "network", "extra"))

    def validation(self, batch_size: int) -> Iterator[Batch]:
        """Yield the validation samples in batches."""
        chosen = self.split.validation
        for start in range(0, len(chosen), batch_size):
            yield self._batch(chosen[start : start + batch_size], 0)

    def label_flags(self, classes: int) -> Array:
        """Return 1 for each class that the training samples have and 0 for the others, as a masked loss reads it."""
        flags = np.zeros(classes, np.float32)
        flags[self.dataset.train.labels[self.split.train]] = 1
        return flags

    def _batch(self, chosen: NDArray[np.int64], seed: int) -> Batch:
        return Batch(*self.dataset.batch(chosen), seed)


def _order(seed: int, count: int) -> NDArray[np.int64]:
    return np.argsort(noise.bits(seed, 0, count), kind="stable")
