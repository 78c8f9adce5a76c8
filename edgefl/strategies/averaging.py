"""One model out of many updates, in running sums: the memory of about one model, whatever the number of updates.

    next = model + sum_i w_i (new_i - base_i) / sum_i w_i       over those i that held and trained the coordinate

The sum below the line is over all i where `Overlap.PARTICIPANTS` is asked for, as if the others had changed nothing. A
coordinate that nobody held keeps its value. In a round every base is the model itself, and this is the mean of the new
values; in buffered mode an old update contributes its change.

Summing changes, not values, is what makes 32-bit sums good enough: with n updates the result is within

    half a unit in its last place  +  (2n + 4) * 2^-24 * sum_i w_i |new_i - base_i| / sum_i w_i

of the exact one, and changes are small beside weights. Updates are added in the order in which they come, so equal
updates in equal order give equal bits. `Strategy` files call this; it knows no settings and no rule.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from edgefl.masks import Array, Mask, add_at, boxes, changes
from edgefl.masks.mask import Selector
from edgefl.model_graph import TensorSpec
from edgefl.strategies.strategy import Contribution, Model
from edgefl.strategies.uploads import base_of, sum_dtype, values_of

__all__ = ["Overlap", "RunningMean", "applied"]

_BLOCK = 1 << 15
_LARGE = 1 << 20
"""Entries from which on a contribution is worth a second thread."""


class Overlap(StrEnum):
    """What a sum of changes is divided by where devices have different parts of the model."""

    HOLDERS = "holders"
    """The weights of those that held and trained the coordinate."""
    PARTICIPANTS = "participants"
    """The weights of all."""


class RunningMean:
    """The weighted mean of the contributions so far. A large one is added by two threads, a half of the tensors each."""

    def __init__(self, model: Model, overlap: Overlap = Overlap.HOLDERS, *, threads: int = 2) -> None:
        self._model, self._overlap, self._threads = model, overlap, threads
        self._pool = ThreadPoolExecutor(max(threads - 1, 1))
        self._sums: dict[str, Array] = {}
        self._totals: dict[str, _Total] = {}
        self._weight = 0.0

    def add(self, contribution: Contribution, weight: float, scale: float = 1.0) -> None:
        """Add a contribution that was checked; `scale` makes its change smaller, but not its weight."""
        contribution.mask.check_model(self._model.graph)
        if weight <= 0:
            return
        self._weight += weight
        for name in contribution.tensors.keys() - self._sums.keys():
            tensor = self._model.graph.tensor[name]
            self._sums[name] = np.zeros(tensor.shape, sum_dtype(tensor))
            self._totals[name] = _Total(tensor.shape, _cut_axes(self._model, tensor))

        def add_some(names: Sequence[str]) -> None:
            for name in names:
                self._add_tensor(contribution, name, weight, scale)

        own, *others = _shares(contribution, self._threads)
        running = [self._pool.submit(add_some, names) for names in others]
        add_some(own)
        for other in running:
            other.result()

    def _add_tensor(self, contribution: Contribution, name: str, weight: float, scale: float) -> None:
        mask, tensor = contribution.mask, self._model.graph.tensor[name]
        base = base_of(tensor, contribution.base, self._model.weights)
        new = values_of(contribution.tensors[name])
        for total, change in changes(mask, name, new, base, self._sums[name], weight=weight * scale):
            np.add(total, change, total)
        if self._overlap is Overlap.HOLDERS:
            self._totals[name].add(mask, name, weight)

    def result(self) -> dict[str, Array]:
        """Return every tensor of the next model. The sums are used up."""
        self._pool.shutdown()
        weights = dict(self._model.weights)
        for name in self._model.weights.keys() & self._sums.keys():
            tensor, total = self._model.graph.tensor[name], self._totals[name]
            if self._overlap is Overlap.PARTICIPANTS:
                total.everywhere = self._weight
            sums = self._sums.pop(name)
            total.divide(sums)
            weights[name] = applied(tensor, self._model.weights[name], sums)
        return weights


def _shares(contribution: Contribution, threads: int) -> list[list[str]]:
    """Divide the tensors into shares of about the same size; a small contribution is one share."""
    sizes = {name: math.prod(contribution.mask.shapes[name]) for name in contribution.tensors}
    if sum(sizes.values()) < _LARGE:
        return [list(sizes)]
    shares: list[list[str]] = [[] for _ in range(threads)]
    filled = [0] * threads
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        least = filled.index(min(filled))
        shares[least].append(name)
        filled[least] += sizes[name]
    return shares


@dataclass(slots=True, eq=False)
class _Total:
    """The weights of those that hold each coordinate of a tensor."""

    shape: tuple[int, ...]
    cut_axes: int
    """So many axes, from the first on, can be cut; along the others all entries have the same holders."""
    everywhere: float = 0.0
    """The weights of those that hold all of it."""
    partial: Array | None = None
    """The weights of the others, in the tensor's shape or with length 1 along axes that cannot be cut."""

    def add(self, mask: Mask, name: str, weight: float) -> None:
        """Count those coordinates that the mask holds."""
        held = name in mask.held
        if not held and mask.shapes[name] == self.shape:
            self.everywhere += weight
            return
        if self.partial is None:
            rest = (1,) * (len(self.shape) - self.cut_axes)
            self.partial = np.zeros(self.shape[: self.cut_axes] + rest, np.float32)
        if held:
            if self.partial.shape != self.shape:
                self.partial = np.array(np.broadcast_to(self.partial, self.shape))
            add_at(mask, name, self.partial, np.float32(weight))
        else:
            self._add_kept(mask.selectors[name][: self.cut_axes], np.float32(weight))

    def _add_kept(self, selectors: tuple[Selector, ...], weight: np.float32) -> None:
        assert self.partial is not None
        if all(isinstance(selector, slice) for selector in selectors):
            self.partial[selectors] += weight
            return
        # Whole rows at a time: numpy is much faster in rows than in single entries.
        row = np.asarray(weight)
        for selector, length in zip(selectors[1:], self.shape[1:], strict=False):
            kept = np.zeros(length, np.float32)
            kept[selector] = 1
            row = row[..., None] * kept
        self.partial[selectors[0]] += row.reshape(row.shape + (1,) * (self.partial.ndim - 1 - row.ndim))

    def divide(self, sums: Array) -> None:
        """Divide sums by this total, in place. Where nobody holds a coordinate, its sum is zero and stays so."""
        if self.partial is None:
            np.divide(sums, sums.dtype.type(self.everywhere or 1), sums)
            return
        totals = np.broadcast_to(self.partial, self.shape)
        for here in boxes(self.shape, _BLOCK):
            total = np.add(totals[here], self.everywhere, dtype=np.float64)
            sums[here] /= np.where(total == 0, 1, total).astype(sums.dtype)


def applied(tensor: TensorSpec, now: Array, change: Array) -> Array:
    """Return a tensor with a change added, in its own dtype and read-only; `change` is used up.

    Whole numbers are rounded to the nearest, and stay within what their dtype can hold.
    """
    if tensor.dtype.startswith("int"):
        limits = np.iinfo(now.dtype)
        new = np.clip(np.rint(change) + now, float(limits.min), math.nextafter(float(limits.max), 0))
        result = np.asarray(new, now.dtype)
    else:
        result = np.add(now, change, change).astype(now.dtype, copy=False)
    result.flags.writeable = False
    return result


def _cut_axes(model: Model, tensor: TensorSpec) -> int:
    """Return how many axes, from the first on, have channels that can be cut."""
    spans = model.graph.spans_of.get(tensor.name, ())
    return max((span.axis + 1 for group, span in spans if group.fixed is None), default=0)
