"""Concatenations, stacks, slices and splits.

The backward pass undoes each by its opposite: a slice by padding, a concatenation by splitting. Cutting through
channels makes them constant; taking whole parts of a concatenation or of a stack does not.
"""

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from edgefl.errors import ExportError
from export.axes import ConcatFactor, ConstantFactor, freeze, resolve, segment, split, unify
from export.constants import accepts_broadcast, expanded
from export.ops.shapes import arranged, refuse_batch, squeeze, transposed, unsqueeze
from export.trace import Trace, Value

__all__ = ["OPERATIONS", "cat", "select", "stack"]


@accepts_broadcast
def cat(t: Trace, values: Sequence[Value], dim: int = 0) -> Value:
    """Tensors concatenated along an axis."""
    values = [value for value in values if value.shape != (0,)]  # torch skips empty tensors, whatever the others are
    dim %= len(values[0].axes)
    for value in values[1:]:
        for place, axis in enumerate(value.axes):
            if place != dim:
                unify(values[0].axes[place], axis)
    parts = [expanded(t, value) for value in values]
    axes = list(parts[0].axes)
    axes[dim] = (ConcatFactor(tuple(part.axes[dim] for part in parts)),)
    out = t.value(t.emit.one("Concat", *(p.name for p in parts), axis=dim), axes, *parts, dtype=parts[0].dtype)
    for part in parts:
        if part.parameter is not None and part.trains:
            t.layer("parameter", {part: 0}, parts, out)

    def backward(gradients: Sequence[str | None]) -> None:
        assert gradients[0] is not None
        sizes = t.shape([part.axes[dim] for part in parts])
        pieces = t.emit.node("Split", [gradients[0], sizes], outputs=len(parts), axis=dim)
        for part, piece in zip(parts, pieces, strict=True):
            t.add_gradient(part, piece)

    t.backward(out, backward)
    return out


@accepts_broadcast
def stack(t: Trace, values: Sequence[Value], dim: int = 0) -> Value:
    """Tensors stacked along a new axis."""
    for value in values[1:]:
        for one, other in zip(values[0].axes, value.axes, strict=True):
            unify(one, other)
    return cat(t, [unsqueeze(t, expanded(t, value), dim) for value in values], dim % (len(values[0].axes) + 1))


# Parts of a tensor


def slice_tensor(
    t: Trace, x: Value, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Value:
    """Every `step`-th entry along an axis, from one index to another."""
    dim %= len(x.axes)
    begin, stop, _ = slice(start, end, step).indices(x.shape[dim])
    return slice_between(t, x, dim, begin, stop) if step == 1 else _strided(t, x, dim, range(begin, stop, step))


def slice_between(t: Trace, x: Value, dim: int, start: int, end: int) -> Value:
    """The entries of an axis between two indices of the example."""
    if (start, end) == (0, x.shape[dim]):
        return x
    refuse_batch(x.axes[dim], "sliced")
    if start >= end:
        raise ExportError(f"the slice from {start} to {end} is empty", fix="Remove it from the model.")
    # In this order: a later segment may make constant what an earlier one would have used as channels.
    before, taken, after = (segment(x.axes[dim], *at) for at in ((0, start), (start, end), (end, x.shape[dim])))
    first, last = t.size(before), t.size((ConcatFactor((before, taken)),))
    axes = [*x.axes[:dim], taken, *x.axes[dim + 1 :]]
    place = t.emit.integers(dim)
    name = t.emit.one("Slice", x.name, first, last, place)

    def undo(grad: str) -> str:
        return t.emit.one("Pad", grad, t.shape([before, after]), t.emit.constant(0.0), place)

    return arranged(t, x, name, axes, undo)


def _strided(t: Trace, x: Value, dim: int, taken: range) -> Value:
    refuse_batch(x.axes[dim], "sliced")
    if not len(taken):
        raise ExportError("the slice is empty", fix="Remove it from the model.")
    freeze(x.axes[dim])
    axes = [*x.axes[:dim], (ConstantFactor(len(taken)),), *x.axes[dim + 1 :]]
    indices = t.emit.integers(*taken)

    def undo(grad: str) -> str:
        zeros = t.emit.one("ConstantOfShape", t.shape([x.axes[dim], *axes[:dim], *axes[dim + 1 :]]))
        order = [dim, *range(dim), *range(dim + 1, len(axes))]
        rows = t.emit.integers(*taken), transposed(t, grad, order)
        column = t.emit.one("Unsqueeze", rows[0], t.emit.integers(1))
        spread = t.emit.one("ScatterND", zeros, column, rows[1])
        return transposed(t, spread, [order.index(place) for place in range(len(order))])

    return arranged(t, x, t.emit.one("Gather", x.name, indices, axis=dim), axes, undo)


def select(t: Trace, x: Value, dim: int, index: int) -> Value:
    """One entry along an axis, which is removed."""
    dim, index = dim % len(x.axes), index % x.shape[dim]
    return squeeze(t, slice_between(t, x, dim, index, index + 1), dim)


def narrow(t: Trace, x: Value, dim: int, start: int, length: int) -> Value:
    """`length` entries from an index on."""
    dim %= len(x.axes)
    start %= x.shape[dim]
    return slice_between(t, x, dim, start, start + length)


def split_by(t: Trace, x: Value, sizes: int | Sequence[int], dim: int = 0) -> tuple[Value, ...]:
    """Parts of the given sizes."""
    dim %= len(x.axes)
    length = x.shape[dim]
    if isinstance(sizes, int):
        sizes = [min(sizes, length - start) for start in range(0, length, sizes)]
    if len(sizes) == 1:
        return (x,)
    refuse_batch(x.axes[dim], "split")
    if len(set(sizes)) == 1 and not any(isinstance(factor, ConcatFactor) for factor in resolve(x.axes[dim])):
        split([x.axes[dim]], [len(sizes), sizes[0]])  # equal parts keep equal channels
    edges = [sum(sizes[:count]) for count in range(len(sizes) + 1)]
    parts = [segment(x.axes[dim], a, b) for a, b in itertools.pairwise(edges)]
    names = t.emit.node("Split", [x.name, t.shape(parts)], outputs=len(parts), axis=dim)
    shapes = [[*x.axes[:dim], part, *x.axes[dim + 1 :]] for part in parts]
    outs = [t.value(name, axes, x, dtype=x.dtype) for name, axes in zip(names, shapes, strict=True)]

    def backward(gradients: Sequence[str | None]) -> None:
        pieces = [
            grad or t.emit.one("ConstantOfShape", t.shape(axes)) for grad, axes in zip(gradients, shapes, strict=True)
        ]
        t.add_gradient(x, t.emit.one("Concat", *pieces, axis=dim))

    t.backward(outs, backward)
    return tuple(outs)


def chunk(t: Trace, x: Value, chunks: int, dim: int = 0) -> tuple[Value, ...]:
    """The requested number of parts; the last one may be shorter."""
    return split_by(t, x, -(-x.shape[dim] // chunks), dim)


def unbind(t: Trace, x: Value, dim: int = 0) -> tuple[Value, ...]:
    """All entries along an axis, which is removed."""
    dim %= len(x.axes)
    return tuple(squeeze(t, part, dim) for part in split_by(t, x, 1, dim))


def getitem(_t: Trace, values: Sequence[Value], index: int) -> Value:
    """One output of an operation that has several."""
    return values[index]


OPERATIONS: dict[str, Callable[..., Any]] = {
    "aten.cat.default": cat,
    "aten.concat.default": cat,
    "aten.stack.default": stack,
    "aten.slice.Tensor": slice_tensor,
    "aten.select.int": select,
    "aten.narrow.default": narrow,
    "aten.split.Tensor": split_by,
    "aten.split.sizes": split_by,
    "aten.split_with_sizes.default": split_by,
    "aten.chunk.default": chunk,
    "aten.unbind.int": unbind,
    str(operator.getitem): getitem,
}
