"""Operations that only rearrange: reshapes, transpositions, expansion, padding.

The backward pass undoes each by its opposite: padding by a slice, expansion by a sum.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from edgefl.errors import ExportError
from export.axes import Axis, BatchFactor, ConcatFactor, ConstantFactor, axis_size, freeze, resolve, split, unify
from export.ops.arithmetic import reduced
from export.trace import Trace, Value

__all__ = [
    "OPERATIONS",
    "arranged",
    "permute",
    "refuse_batch",
    "squeeze",
    "transpose",
    "transposed",
    "unsqueeze",
    "view",
]


def arranged(t: Trace, x: Value, name: str, axes: Sequence[Axis], undo: Callable[[str], str]) -> Value:
    """Return a value with the entries of x; `undo` maps a gradient back to the form of x."""
    out = t.value(name, axes, x, dtype=x.dtype)
    if math.prod(out.shape) == math.prod(x.shape):
        out.parameter = x.parameter  # its readers read the parameter
    elif x.parameter is not None and x.trains:
        out = t.layer("parameter", {x: 0}, [], out)
    t.backward(out, lambda grads: t.add_gradient(x, undo(str(grads[0]))))
    return out


# The same entries in the same order


def view(t: Trace, x: Value, sizes: Sequence[int]) -> Value:
    """The same entries in another shape."""
    known = math.prod(size for size in sizes if size != -1)
    full = [math.prod(x.shape) // known if size == -1 and known else size for size in sizes]
    return _reshaped(t, x, split(x.axes, full))


def _reshaped(t: Trace, x: Value, axes: Sequence[Axis]) -> Value:
    if [resolve(axis) for axis in axes] == [resolve(axis) for axis in x.axes]:
        return x
    return arranged(t, x, t.reshape(x.name, x.axes, axes), axes, lambda grad: t.reshape(grad, axes, x.axes))


def flatten(t: Trace, x: Value, start: int = 0, end: int = -1) -> Value:
    """Merge neighbouring axes."""
    if not x.axes:
        return _reshaped(t, x, [()])
    start, end = start % len(x.axes), end % len(x.axes)
    merged: Axis = tuple(factor for axis in x.axes[start : end + 1] for factor in axis)
    return _reshaped(t, x, [*x.axes[:start], merged, *x.axes[end + 1 :]])


def unflatten(t: Trace, x: Value, dim: int, sizes: Sequence[int]) -> Value:
    """Divide an axis into several."""
    dim %= len(x.axes)
    known = math.prod(size for size in sizes if size != -1)
    full = [x.shape[dim] // known if size == -1 else size for size in sizes]
    return _reshaped(t, x, [*x.axes[:dim], *split([x.axes[dim]], full), *x.axes[dim + 1 :]])


def unsqueeze(t: Trace, x: Value, dim: int) -> Value:
    """Insert an axis of length 1."""
    dim %= len(x.axes) + 1
    place = t.emit.integers(dim)
    axes = [*x.axes[:dim], (), *x.axes[dim:]]
    return arranged(t, x, t.emit.one("Unsqueeze", x.name, place), axes, lambda g: t.emit.one("Squeeze", g, place))


def squeeze(t: Trace, x: Value, dim: int | Sequence[int] | None = None) -> Value:
    """Drop axes of length 1: all, or those among the given ones."""
    chosen = range(len(x.axes)) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = [place % len(x.axes) for place in chosen]
    gone = sorted(place for place in gone if x.shape[place] == 1)
    if not gone:
        return x
    places = t.emit.integers(*gone)
    axes = [axis for place, axis in enumerate(x.axes) if place not in gone]
    return arranged(t, x, t.emit.one("Squeeze", x.name, places), axes, lambda g: t.emit.one("Unsqueeze", g, places))


def same(_t: Trace, x: Value, *_: Any, **__: Any) -> Value:
    """The tensor itself, for operations that affect memory alone."""
    return x


def detach(t: Trace, x: Value) -> Value:
    """The same entries, without a gradient."""
    return Value(x.name, x.axes, x.dtype, layers=x.layers)


def cast(t: Trace, x: Value, *args: Any, **kwargs: Any) -> Value:
    """The same entries with another dtype: float32 stays as it is, whole numbers and flags may become float32."""
    asked = [arg for arg in (*args, *kwargs.values()) if str(arg).startswith("torch.") and "format" not in str(arg)]
    wanted = [str(arg).removeprefix("torch.") for arg in asked]
    kinds = {"float32": 1, "int64": 7, "bool": 9}
    dtype = next((name for name in wanted if name not in ("strided",)), x.dtype)
    if dtype == x.dtype:
        return x
    if dtype not in kinds or x.trains:
        raise ExportError(
            f"a tensor of {x.dtype} would become {dtype}", fix="Keep activations in float32, in which they are trained."
        )
    return t.value(t.emit.one("Cast", x.name, to=kinds[dtype]), x.axes, x, dtype=dtype)


# The same entries in another order


def permute(t: Trace, x: Value, dims: Sequence[int]) -> Value:
    """Axes in another order."""
    order = [dim % len(x.axes) for dim in dims]
    if order == sorted(order):
        return x
    back = [order.index(place) for place in range(len(order))]
    axes = [x.axes[place] for place in order]
    name = transposed(t, x.name, order)
    return arranged(t, x, name, axes, lambda grad: transposed(t, grad, back))


def transposed(t: Trace, name: str, order: Sequence[int]) -> str:
    """Emit a transposition."""
    return t.emit.one("Transpose", name, perm=list(order))


def transpose(t: Trace, x: Value, one: int, other: int) -> Value:
    """Two axes swapped."""
    order = list(range(len(x.axes)))
    order[one], order[other] = order[other], order[one]
    return permute(t, x, order)


def matrix_transpose(t: Trace, x: Value) -> Value:
    """The transpose of a matrix."""
    return permute(t, x, list(range(len(x.axes)))[::-1])


def flip(t: Trace, x: Value, dims: Sequence[int]) -> Value:
    """Axes in reverse. Reversed channels cannot be cut like the others, so they become constant."""
    places = [dim % len(x.axes) for dim in dims]
    for place in places:
        refuse_batch(x.axes[place], "reversed")
        freeze(x.axes[place])
    integers = t.emit.integers
    ends = [-1] * len(places), [-(2**31)] * len(places), places, [-1] * len(places)
    arguments = [integers(*numbers) for numbers in ends]
    return arranged(t, x, t.emit.one("Slice", x.name, *arguments), x.axes, lambda g: t.emit.one("Slice", g, *arguments))


def refuse_batch(axis: Axis, done: str) -> None:
    """Raise for an operation that would treat the samples of a batch differently."""
    if any(isinstance(factor, BatchFactor) for factor in resolve(axis)):
        raise ExportError(
            f"the batch is {done}", fix="Treat every sample alike; take parts of samples before they are batched."
        )


# Larger than before


def expand(t: Trace, x: Value, sizes: Sequence[int], implicit: bool = False) -> Value:
    """Axes of length 1, repeated. Sizes equal to the batch's follow the batch, others are constant."""
    extra = len(sizes) - len(x.axes)
    old = ((),) * extra + x.axes
    batch = t.batch_size
    axes: list[Axis] = []
    for axis, size in zip(old, sizes, strict=True):
        repeated = axis_size(axis) == 1 and size not in (-1, 1)
        axes.append(((BatchFactor(batch),) if size == batch else (ConstantFactor(size),)) if repeated else axis)
    return _expanded(t, x, axes)


def repeat(t: Trace, x: Value, times: Sequence[int]) -> Value:
    """Axes repeated as a whole, the given number of times."""
    for _ in range(len(times) - len(x.axes)):
        x = unsqueeze(t, x, 0)
    for place, number in enumerate(times):
        if number != 1:
            x = unsqueeze(t, x, place)
            x = expand(t, x, [number if at == place else -1 for at in range(len(x.axes))])
            x = flatten(t, x, place, place + 1)
    return x


def expand_as(t: Trace, x: Value, other: Value) -> Value:
    """Axes of length 1, repeated to the size of another tensor."""
    old = ((),) * (len(other.axes) - len(x.axes)) + x.axes
    for one, two in zip(old, other.axes, strict=True):
        if axis_size(one) != 1:
            unify(one, two)
    return _expanded(t, x, other.axes)


def _expanded(t: Trace, x: Value, axes: Sequence[Axis]) -> Value:
    if [resolve(axis) for axis in axes] == [resolve(axis) for axis in x.axes]:
        return x
    name = t.emit.one("Expand", x.name, t.shape(axes))
    return arranged(t, x, name, axes, lambda grad: reduced(t, grad, tuple(axes), x))


def pad(t: Trace, x: Value, pads: Sequence[int], mode: str = "constant", value: float | None = None) -> Value:
    """A constant around the tensor; torch counts the axes from the last one."""
    if mode != "constant":
        raise ExportError(f"padding with mode {mode!r} cannot be exported", fix="Pad with zeros: mode='constant'.")
    rank = len(x.axes)
    lows, highs = [0] * rank, [0] * rank
    for place in range(len(pads) // 2):
        lows[rank - 1 - place], highs[rank - 1 - place] = pads[2 * place], pads[2 * place + 1]
    if min(pads, default=0) < 0:
        raise ExportError(f"padding by {list(pads)} would crop", fix="Slice the tensor instead of negative padding.")
    padded = [place for place in range(rank) if lows[place] or highs[place]]
    if not padded:
        return x
    for place in padded:
        refuse_batch(x.axes[place], "padded")
    axes: list[Axis] = list(x.axes)
    for place in padded:
        axes[place] = (ConcatFactor(((ConstantFactor(lows[place]),), axes[place], (ConstantFactor(highs[place]),))),)
    integers = t.emit.integers
    amounts = integers(*(lows[place] for place in padded), *(highs[place] for place in padded))
    filling = t.emit.constant(value or 0.0)
    name = t.emit.one("Pad", x.name, amounts, filling, integers(*padded))

    def undo(grad: str) -> str:
        starts = integers(*(lows[place] for place in padded))
        # A negative end counts from the back, so widths need not be known; 2^31 stands for the end itself.
        ends = integers(*(-highs[place] or 2**31 for place in padded))
        return t.emit.one("Slice", grad, starts, ends, integers(*padded))

    return arranged(t, x, name, axes, undo)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "aten.view.default": view,
    "aten.reshape.default": view,
    "aten._unsafe_view.default": view,
    "aten.view_as.default": lambda t, x, other: _reshaped(t, x, split(x.axes, other.shape)),
    "aten.reshape_as.default": lambda t, x, other: _reshaped(t, x, split(x.axes, other.shape)),
    "aten.flatten.using_ints": flatten,
    "aten.unflatten.int": unflatten,
    "aten.unsqueeze.default": unsqueeze,
    "aten.unsqueeze_.default": unsqueeze,
    "aten.squeeze.default": squeeze,
    "aten.squeeze.dim": squeeze,
    "aten.squeeze.dims": squeeze,
    "aten.contiguous.default": same,
    "aten.clone.default": same,
    "aten.alias.default": same,
    "aten.lift_fresh_copy.default": same,
    "aten.detach.default": detach,
    "aten.detach_.default": detach,
    "aten.to.dtype": cast,
    "aten.to.device": cast,
    "aten.to.dtype_layout": cast,
    "aten._to_copy.default": cast,
    "aten.type_as.default": lambda t, x, other: cast(t, x, f"torch.{other.dtype}"),
    "aten.permute.default": permute,
    "aten.transpose.int": transpose,
    "aten.swapaxes.default": transpose,
    "aten.t.default": matrix_transpose,
    "aten.numpy_T.default": matrix_transpose,
    "aten.mT.default": lambda t, x: transpose(t, x, -2, -1),
    "aten.flip.default": flip,
    "aten.expand.default": expand,
    "aten.expand_as.default": expand_as,
    "aten.repeat.default": repeat,
    "aten._assert_tensor_metadata.default": lambda t, x, *_, **__: None,  # torch's own check on the traced example
    "aten.pad.default": pad,
    "aten.constant_pad_nd.default": lambda t, x, pads, value=0.0: pad(t, x, pads, value=value),
}
