"""Means, sums, extremes and variances over axes.

The number of reduced entries is a constant where all sizes are, and otherwise computed when the graph runs.
"""

from collections.abc import Callable, Sequence
from typing import Any

from export.axes import Axis, axis_size
from export.ops.arithmetic import power
from export.trace import Trace, Value, is_constant

__all__ = ["OPERATIONS", "count", "mean"]

Dims = int | Sequence[int] | None


def count(t: Trace, axes: Sequence[Axis], less: int = 0) -> str:
    """Return the name of a number: how many entries some axes have together, minus a correction."""
    merged: Axis = tuple(factor for axis in axes for factor in axis)
    if is_constant(merged):
        return t.emit.constant(float(axis_size(merged) - less))
    size = t.emit.one("Squeeze", t.emit.one("Cast", t.size(merged), to=1), t.emit.integers(0))
    return t.emit.one("Sub", size, t.emit.constant(float(less))) if less else size


def _reduction(
    t: Trace, kind: str, x: Value, places: Sequence[int], keepdim: bool, gradient: Callable[[str, str], str]
) -> Value:
    """Emit a reduction; `gradient` maps gradient and result, both with the axes kept, to the gradient of x."""
    over = t.emit.integers(*places)
    name = t.emit.one(kind, x.name, over, keepdims=int(keepdim))
    axes = [() if place in places else axis for place, axis in enumerate(x.axes)]
    kept = [axis for place, axis in enumerate(axes) if keepdim or place not in places]
    out = t.value(name, kept, x, dtype=x.dtype)

    def backward(gradients: Sequence[str | None]) -> None:
        assert gradients[0] is not None
        grad, result = (n if keepdim else t.emit.one("Unsqueeze", n, over) for n in (gradients[0], name))
        t.add_gradient(x, gradient(grad, result))

    t.backward(out, backward)
    return out


def _places(x: Value, dim: Dims) -> list[int]:
    chosen = range(len(x.axes)) if dim is None or dim == [] else [dim] if isinstance(dim, int) else dim
    return sorted(place % len(x.axes) for place in chosen)


def _spread(t: Trace, grad: str, x: Value) -> str:
    return t.emit.one("Expand", grad, t.emit.one("Shape", x.name))


def mean(t: Trace, x: Value, dim: Dims = None, keepdim: bool = False, **_: Any) -> Value:
    """The mean over some axes, or over all."""
    places = _places(x, dim)

    def gradient(grad: str, _result: str) -> str:
        return _spread(t, t.emit.one("Div", grad, count(t, [x.axes[place] for place in places])), x)

    return _reduction(t, "ReduceMean", x, places, keepdim, gradient) if places else x


def total(t: Trace, x: Value, dim: Dims = None, keepdim: bool = False, **_: Any) -> Value:
    """The sum over some axes, or over all."""
    places = _places(x, dim)
    return _reduction(t, "ReduceSum", x, places, keepdim, lambda grad, _: _spread(t, grad, x)) if places else x


def _extreme(kind: str) -> Callable[..., Value]:
    def operation(t: Trace, x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
        places = _places(x, dim)

        def gradient(grad: str, result: str) -> str:
            # Entries that are equally extreme share the gradient.
            among = t.emit.one("Cast", t.emit.one("Equal", x.name, result), to=1)
            many = t.emit.one("ReduceSum", among, t.emit.integers(*places), keepdims=1)
            return t.emit.one("Mul", among, t.emit.one("Div", grad, many))

        return _reduction(t, kind, x, places, keepdim, gradient) if places else x

    return operation


def _with_index(kind: str, index_kind: str) -> Callable[..., tuple[Value, Value]]:
    def operation(t: Trace, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        """Return the extreme entries and their positions; the gradient goes to the first of equals."""
        place = dim % len(x.axes)
        first = t.emit.one(index_kind, x.name, axis=place, keepdims=0)

        def gradient(grad: str, _result: str) -> str:
            depth = t.emit.one("Squeeze", t.size(x.axes[place]), t.emit.integers(0))
            hit = t.emit.one("OneHot", first, depth, t.emit.constant([0.0, 1.0]), axis=place)
            return t.emit.one("Mul", hit, grad)

        out = _reduction(t, kind, x, [place], keepdim, gradient)
        where = t.emit.one("Unsqueeze", first, t.emit.integers(place)) if keepdim else first
        return out, Value(where, out.axes, "int64")

    return operation


def argmax(t: Trace, x: Value, dim: int, keepdim: bool = False) -> Value:
    """The position of the largest entry."""
    place = dim % len(x.axes)
    axes = [() if at == place else axis for at, axis in enumerate(x.axes) if keepdim or at != place]
    return Value(t.emit.one("ArgMax", x.name, axis=place, keepdims=int(keepdim)), tuple(axes), "int64")


def variance(
    t: Trace,
    x: Value,
    dim: Dims = None,
    unbiased: bool = True,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Value:
    """The mean squared distance from the mean, divided by one less than the count by default."""
    places = _places(x, dim)
    less = int(correction) if correction is not None else int(unbiased)
    over = t.emit.integers(*places)
    centred = t.emit.one("Sub", x.name, t.emit.one("ReduceMean", x.name, over, keepdims=1))
    number = count(t, [x.axes[place] for place in places], less)
    squares = t.emit.one("ReduceSum", t.emit.one("Mul", centred, centred), over, keepdims=int(keepdim))
    axes = [() if place in places else axis for place, axis in enumerate(x.axes) if keepdim or place not in places]
    out = t.value(t.emit.one("Div", squares, number), axes, x)

    def backward(gradients: Sequence[str | None]) -> None:
        grad = str(gradients[0]) if keepdim else t.emit.one("Unsqueeze", str(gradients[0]), over)
        slope = t.emit.one("Div", t.emit.one("Mul", grad, t.emit.constant(2.0)), number)
        t.add_gradient(x, t.emit.one("Mul", centred, slope))

    t.backward(out, backward)
    return out


def deviation(t: Trace, x: Value, *args: Any, **kwargs: Any) -> Value:
    """The square root of the variance."""
    return power(t, variance(t, x, *args, **kwargs), 0.5)


def _of_all(operation: Callable[..., Value]) -> Callable[..., Value]:
    """Return the variant of a statistic whose first argument is `unbiased`, over all axes."""
    return lambda t, x, unbiased=True: operation(t, x, None, unbiased)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "aten.mean.default": mean,
    "aten.mean.dim": mean,
    "aten.sum.default": total,
    "aten.sum.dim_IntList": total,
    "aten.amax.default": _extreme("ReduceMax"),
    "aten.amin.default": _extreme("ReduceMin"),
    "aten.max.default": _extreme("ReduceMax"),
    "aten.min.default": _extreme("ReduceMin"),
    "aten.max.dim": _with_index("ReduceMax", "ArgMax"),
    "aten.min.dim": _with_index("ReduceMin", "ArgMin"),
    "aten.argmax.default": argmax,
    "aten.var.default": _of_all(variance),
    "aten.var.dim": variance,
    "aten.var.correction": variance,
    "aten.std.default": _of_all(deviation),
    "aten.std.dim": deviation,
    "aten.std.correction": deviation,
}
