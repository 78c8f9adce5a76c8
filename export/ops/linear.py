"""Linear layers and matrix products."""

from collections.abc import Callable, Sequence
from typing import Any

from export.axes import Axis, axis_size, unify
from export.ops.arithmetic import add, broadcast, entries_of_a_sample, mul, reduced
from export.ops.shapes import squeeze, transposed, unsqueeze
from export.trace import Trace, Value

__all__ = ["OPERATIONS", "linear", "matmul"]


def linear(t: Trace, x: Value, weight: Value, bias: Value | None = None) -> Value:
    """y = x w^T + b, over the last axis of x."""
    unify(weight.axes[1], x.axes[-1])
    axes = (*x.axes[:-1], weight.axes[0])
    if bias is not None:
        unify(bias.axes[0], weight.axes[0])
    rows = _rows(t, x.name, x.axes)
    flat = t.emit.one("Gemm", rows, weight.name, *([bias.name] if bias else []), transB=1)
    parameters = {weight: entries_of_a_sample(t, x.axes[:-1]), **({bias: 0} if bias else {})}
    out = t.value(_unrolled(t, flat, axes), axes, x, *parameters)
    out = t.layer("linear", parameters, [x], out)

    def backward(gradients: Sequence[str | None]) -> None:
        assert gradients[0] is not None
        grad = _rows(t, gradients[0], axes)
        if bias is not None:
            t.add_gradient(bias, t.emit.one("ReduceSum", grad, t.emit.integers(0), keepdims=0))
        t.add_gradient(weight, t.emit.one("Gemm", grad, rows, transA=1))
        if x.trains:
            t.add_gradient(x, _unrolled(t, t.emit.one("Gemm", grad, weight.name), x.axes))

    t.backward(out, backward)
    return out


def _rows(t: Trace, name: str, axes: Sequence[Axis]) -> str:
    """Return a tensor as a matrix: all axes but the last merged."""
    if len(axes) == 2:
        return name
    merged: Axis = tuple(factor for axis in axes[:-1] for factor in axis)
    return t.reshape(name, axes, (merged, axes[-1]))


def _unrolled(t: Trace, name: str, axes: Sequence[Axis]) -> str:
    """Restore the axes that the rows of a matrix were merged from."""
    if len(axes) == 2:
        return name
    merged: Axis = tuple(factor for axis in axes[:-1] for factor in axis)
    return t.reshape(name, (merged, axes[-1]), axes)


def matmul(t: Trace, x: Value, other: Value) -> Value:
    """A product of matrices, of stacks of them, or of vectors."""
    if len(x.axes) == 1:
        return squeeze(t, matmul(t, unsqueeze(t, x, 0), other), -1 if len(other.axes) == 1 else -2)
    if len(other.axes) == 1:
        return squeeze(t, matmul(t, x, unsqueeze(t, other, 1)), -1)
    if len(other.axes) == 2:
        return _by_matrix(t, x, other)
    return _stacked(t, x, other)


def _by_matrix(t: Trace, x: Value, weight: Value) -> Value:
    """Return x w for one matrix: all rows of x in one product."""
    unify(weight.axes[0], x.axes[-1])
    axes = (*x.axes[:-1], weight.axes[1])
    rows = _rows(t, x.name, x.axes)
    out = t.value(_unrolled(t, t.emit.one("MatMul", rows, weight.name), axes), axes, x, weight)
    _note(t, x, weight, out)

    def backward(gradients: Sequence[str | None]) -> None:
        assert gradients[0] is not None
        grad = _rows(t, gradients[0], axes)
        t.add_gradient(weight, t.emit.one("Gemm", rows, grad, transA=1))
        if x.trains:
            t.add_gradient(x, _unrolled(t, t.emit.one("Gemm", grad, weight.name, transB=1), x.axes))

    t.backward(out, backward)
    return out


def _stacked(t: Trace, x: Value, other: Value) -> Value:
    """Return one product for every pair of matrices; the axes before the last two are broadcast."""
    unify(x.axes[-1], other.axes[-2])
    _, outer = broadcast(t, Value("", x.axes[:-2]), Value("", other.axes[:-2]))
    axes = (*outer, x.axes[-2], other.axes[-1])
    out = t.value(t.emit.one("MatMul", x.name, other.name), axes, x, other)
    _note(t, x, other, out)

    def backward(gradients: Sequence[str | None]) -> None:
        assert gradients[0] is not None
        if x.trains:
            grad = t.emit.one("MatMul", gradients[0], _turned(t, other))
            t.add_gradient(x, reduced(t, grad, (*outer, *x.axes[-2:]), x))
        if other.trains:
            grad = t.emit.one("MatMul", _turned(t, x), gradients[0])
            t.add_gradient(other, reduced(t, grad, (*outer, *other.axes[-2:]), other))

    t.backward(out, backward)
    return out


def _turned(t: Trace, value: Value) -> str:
    order = list(range(len(value.axes)))
    return transposed(t, value.name, [*order[:-2], order[-1], order[-2]])


def _note(t: Trace, x: Value, other: Value, out: Value) -> None:
    """Record what a product costs: for its parameter if one side is one, else between activations."""
    work = entries_of_a_sample(t, out.axes) * axis_size(x.axes[-1])
    for value, source in ((other, x), (x, other)):
        if value.parameter is not None and value.trains:
            t.layer("linear", {value: work // entries_of_a_sample(t, value.axes)}, [source], out)
            return
    t.product([x, other], x.shape[-2], (*out.axes[:-2], x.axes[-1], out.axes[-1]))


def addmm(t: Trace, bias: Value, x: Value, other: Value, *, beta: float = 1, alpha: float = 1) -> Value:
    """Beta * bias + alpha * (x times other)."""
    product = matmul(t, x, other)
    return add(t, _scaled(t, product, alpha), _scaled(t, bias, beta))


def _scaled(t: Trace, x: Value, factor: float) -> Value:
    return x if factor == 1 else mul(t, x, factor)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "aten.linear.default": linear,
    "aten.matmul.default": matmul,
    "aten.mm.default": matmul,
    "aten.bmm.default": matmul,
    "aten.dot.default": matmul,
    "aten.mv.default": matmul,
    "aten.addmm.default": addmm,
    "aten.baddbmm.default": addmm,
}
