"""The mean of many updates, in running sums: the memory of about one model, whatever the number of updates.

    next = model + sum_i w_i (new_i - base_i) / sum_i w_i       over those i that held and trained the coordinate

With `Overlap.PARTICIPANTS` the sum in the denominator is over all i, as if the others had changed nothing. A coordinate
that no device held keeps its value. In a round every base is the model itself, and this is the mean of the new values;
in buffered mode an old update contributes its change.

Summing changes, not values, is what makes 32-bit sums good enough: with n updates the result is within

    half a unit in its last place  +  (2n + 4) * 2^-24 * sum_i w_i |new_i - base_i| / sum_i w_i

of the exact one, and changes are small beside weights. A weight that no device changed keeps its value. Updates are
added in the order in which they come, so equal updates in equal order give equal bits.

Beside the sums there are the totals of the denominator: one for each pair of channels, and one for each weight only if
masks hold single weights. Strategies call this; it knows no settings and no rule.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from edgefl.masks import Array, Mask, add_at, add_changes, boxes, changes
from edgefl.masks.block_changes import BLOCK
from edgefl.masks.mask import Selector
from edgefl.model_graph import ModelGraph, TensorSpec
from edgefl.strategies.strategy import ClientUpdate, Model
from edgefl.strategies.update_checks import base_of, sum_dtype, values_of

__all__ = ["Overlap", "RunningMean", "apply_change"]


class Overlap(StrEnum):
    """What a sum of changes is divided by if devices have different submodels."""

    HOLDERS = "holders"
    """The weights of the devices that held and trained the coordinate."""
    PARTICIPANTS = "participants"
    """The weights of all participants."""


class RunningMean:
    """The weighted mean of the updates so far.

    Large tensors that come whole are added two at a time where possible, because reading the base and the sum from
    memory takes longer than adding. To save memory too, a third of them waits from an even update for the next, and
    another third from an odd one.
    """

    def __init__(self, model: Model, overlap: Overlap = Overlap.HOLDERS) -> None:
        self._model, self._overlap = model, overlap
        self._sums: dict[str, Array] = {}
        self._totals: dict[str, _Total] = {}
        self._weight, self._count = 0.0, 0
        self._thirds = _thirds(model.graph)
        self._waiting: dict[str, _Whole] = {}

    def add(self, update: ClientUpdate, weight: float, scale: float = 1.0) -> None:
        """Add a checked update; `scale` makes its change smaller, but not its weight."""
        mask, graph = update.mask, self._model.graph
        mask.check_model(graph)
        if weight <= 0:
            return
        self._weight, self._count = self._weight + weight, self._count + 1
        for name, payload in update.tensors.items():
            tensor = graph.tensor[name]
            if name not in self._sums:
                self._sums[name] = np.zeros(tensor.shape, sum_dtype(tensor))
                self._totals[name] = _Total(tensor.shape, _cut_axes(graph, tensor), sum_dtype(tensor))
            new, base = values_of(payload), base_of(tensor, update.base, self._model.weights)
            if new.shape == tensor.shape and name not in mask.held:
                self._add_whole(name, _Whole(new, base, weight * scale))
            else:
                blocks = changes(mask, name, new, base, self._sums[name], weight=weight * scale)
                for total, change in blocks:
                    np.add(total, change, total)
            if self._overlap is Overlap.HOLDERS:
                self._totals[name].add(mask, name, weight)

    def _add_whole(self, name: str, whole: "_Whole") -> None:
        before = self._waiting.pop(name, None)
        if before is None and name in self._thirds[self._count % 2]:
            self._waiting[name] = whole
        elif before is not None and before.base is whole.base:
            add_changes(self._sums[name], whole.base, [(before.new, before.weight), (whole.new, whole.weight)])
        else:
            for one in (before, whole):
                if one is not None:
                    add_changes(self._sums[name], one.base, [(one.new, one.weight)])

    def result(self) -> dict[str, Array]:
        """Return every tensor of the next model. The sums are then empty."""
        for name, last in self._waiting.items():
            add_changes(self._sums[name], last.base, [(last.new, last.weight)])
        self._waiting.clear()
        weights = dict(self._model.weights)
        for name in list(self._sums):
            tensor, total = self._model.graph.tensor[name], self._totals[name]
            if self._overlap is Overlap.PARTICIPANTS:
                total.everywhere = self._weight
            sums = self._sums.pop(name)
            total.divide(sums)
            weights[name] = apply_change(tensor, self._model.weights[name], sums)
        return weights


@dataclass(frozen=True, slots=True, eq=False)
class _Whole:
    """New values of a whole tensor."""

    new: Array
    base: Array
    weight: float


@dataclass(slots=True, eq=False)
class _Total:
    """The weights of the devices that hold each coordinate of a tensor."""

    shape: tuple[int, ...]
    cut_axes: int
    """The number of axes, from the first on, that can be cut; along the others all entries have the same holders."""
    dtype: np.dtype[np.floating]
    everywhere: float = 0.0
    """The weights of the devices that hold all of it."""
    partial: Array | None = None
    """The weights of the others, in the tensor's shape or with length 1 along axes that cannot be cut."""

    def add(self, mask: Mask, name: str, weight: float) -> None:
        """Count the coordinates that the mask holds."""
        held = name in mask.held
        if not held and mask.shapes[name] == self.shape:
            self.everywhere += weight
            return
        if self.partial is None:
            rest = (1,) * (len(self.shape) - self.cut_axes)
            self.partial = np.zeros(self.shape[: self.cut_axes] + rest, self.dtype)
        if held:
            if self.partial.shape != self.shape:
                self.partial = np.array(np.broadcast_to(self.partial, self.shape))
            add_at(mask, name, self.partial, self.dtype.type(weight))
        else:
            _add_kept(self.partial, mask.selectors[name][: self.cut_axes], weight)

    def divide(self, sums: Array) -> None:
        """Divide sums by this total, in place. The sum of a coordinate that no device holds stays zero."""
        if self.partial is None:
            np.divide(sums, sums.dtype.type(self.everywhere or 1), sums)
            return
        totals = np.broadcast_to(self.partial, self.shape)
        for here in boxes(self.shape, BLOCK):
            total = np.add(totals[here], self.everywhere, dtype=np.float64)
            sums[here] /= np.where(total == 0, 1, total).astype(sums.dtype)


def _add_kept(totals: Array, selectors: tuple[Selector, ...], weight: float) -> None:
    """Add a weight to what is kept. `selectors` are those of the first axes; the others are whole."""
    if all(isinstance(selector, slice) for selector in selectors):
        totals[selectors] += weight
        return
    # Whole rows at a time: numpy is much faster with rows than with single entries.
    row = np.asarray(weight, totals.dtype)
    for selector, length in zip(selectors[1:], totals.shape[1:], strict=False):
        kept = np.zeros(length, totals.dtype)
        kept[selector] = 1
        row = row[..., None] * kept
    totals[selectors[0]] += row.reshape(row.shape + (1,) * (totals.ndim - 1 - row.ndim))


def apply_change(tensor: TensorSpec, now: Array, change: Array) -> Array:
    """Return a tensor with a change added, in its own dtype and read-only; the array of `change` is reused.

    Integers are rounded to the nearest, and stay within the range of their dtype.
    """
    if tensor.dtype.startswith("int"):
        limits = np.iinfo(now.dtype)
        new = np.clip(np.rint(change) + now, float(limits.min), math.nextafter(float(limits.max), 0))
        result = np.asarray(new, now.dtype)
    else:
        result = np.add(now, change, change).astype(now.dtype, copy=False)
    result.flags.writeable = False
    return result


def _thirds(graph: ModelGraph) -> list[set[str]]:
    """Divide the tensors larger than a block into three sets of about the same size."""
    thirds: list[set[str]] = [set(), set(), set()]
    sizes = [0, 0, 0]
    for tensor in sorted(graph.tensors, key=lambda tensor: -tensor.size):
        if tensor.size > BLOCK:
            smallest = sizes.index(min(sizes))
            thirds[smallest].add(tensor.name)
            sizes[smallest] += tensor.size
    return thirds


def _cut_axes(graph: ModelGraph, tensor: TensorSpec) -> int:
    """Return how many axes, from the first on, have channels that can be cut."""
    spans = graph.spans_of.get(tensor.name, ())
    return max((span.axis + 1 for group, span in spans if group.fixed is None), default=0)
