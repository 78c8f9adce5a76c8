"""Elementwise sums, products and other functions, with broadcasting; comparisons and choices.

Numbers that a model computes from its sizes in Python are constants here: torch.export passes them as numbers.
"""

from collections.abc import Callable, Sequence
from typing import Any

from edgefl.errors import ExportError
from export.axes import Axis, axis_size, unify
from export.constants import BroadcastConstant, accepts_broadcast, expanded
from export.trace import Trace, Value

__all__ = ["OPERATIONS", "broadcast", "elementwise", "entries_of_a_sample", "reduced"]

Number = int | float | bool
_RANK = {"bool": 0, "int64": 1, "float32": 2}
_ONNX = {"bool": 9, "int64": 7, "float32": 1}


# Broadcasting


def broadcast(t: Trace, *operands: Value) -> tuple[list[Value], tuple[Axis, ...]]:
    """Make the axes of values agree where neither is broadcast; return the values, and the axes of the result."""
    rank = max(len(value.axes) for value in operands)
    aligned = [((),) * (rank - len(value.axes)) + value.axes for value in operands]
    result: list[Axis] = []
    for axes in zip(*aligned, strict=True):
        long = [axis for axis in axes if axis_size(axis) != 1]
        for axis in long[1:]:
            unify(long[0], axis)
        result.append(long[0] if long else ())
    # A constant is stored at length 1; expand it if no other operand gives the result its length.
    stored = [axes for value, axes in zip(operands, aligned, strict=True) if not isinstance(value, BroadcastConstant)]
    for place, axis in enumerate(result):
        if axis_size(axis) != 1 and all(axis_size(axes[place]) == 1 for axes in stored):
            return [expanded(t, value) for value in operands], tuple(result)
    return list(operands), tuple(result)


def reduced(t: Trace, grad: str, axes: Sequence[Axis], value: Value) -> str:
    """Return the gradient of a value that was broadcast: summed over the axes along which it was repeated."""
    extra = len(axes) - len(value.axes)
    sizes = (1,) * extra + value.shape
    repeated = [place for place, axis in enumerate(axes) if sizes[place] == 1 and axis_size(axis) != 1]
    if repeated:
        grad = t.emit.one("ReduceSum", grad, t.emit.integers(*repeated), keepdims=1)
    return grad if not extra else t.emit.one("Squeeze", grad, t.emit.integers(*range(extra)))


def entries_of_a_sample(t: Trace, axes: Sequence[Axis]) -> int:
    """Return the number of entries of some axes for one sample."""
    count = 1
    for axis in axes:
        count *= axis_size(axis)
    return count // t.batch_size if count % t.batch_size == 0 else count


def _value(t: Trace, number: Value | Number, like: str) -> Value:
    """Return a number as a value. As in torch, a fraction turns whole numbers beside it into fractions."""
    if isinstance(number, Value):
        return number
    whole_number = "int64" if like == "bool" and not isinstance(number, bool) else like
    dtype = "float32" if isinstance(number, float) else whole_number
    return Value(t.emit.constant(number, dtype), (), dtype)


def _promoted(t: Trace, values: Sequence[Value]) -> list[Value]:
    dtype = max((value.dtype for value in values), key=_RANK.__getitem__)
    return [
        value
        if value.dtype == dtype
        else type(value)(t.emit.one("Cast", value.name, to=_ONNX[dtype]), value.axes, dtype)
        for value in values
    ]


# Two operands


Derivative = Callable[[Trace, str, str, str, str], tuple[str, str]]
"""Takes the output's gradient and the names of both operands and the output; returns the operands' gradients."""


def _binary(t: Trace, kind: str, x: Value | Number, other: Value | Number, derivative: Derivative, uses: bool) -> Value:
    like = next(value.dtype for value in (x, other) if isinstance(value, Value))
    (left, right), axes = broadcast(t, *_promoted(t, [_value(t, x, like), _value(t, other, like)]))
    name = t.emit.one(kind, left.name, right.name)
    out = t.value(name, axes, left, right, dtype=left.dtype)
    _note(t, out, left, right, uses)

    def backward(gradients: Sequence[str | None]) -> None:
        assert gradients[0] is not None
        parts = derivative(t, gradients[0], left.name, right.name, name)
        for value, grad in zip((left, right), parts, strict=True):
            if value.trains:
                t.add_gradient(value, reduced(t, grad, axes, value))

    t.backward(out, backward)
    return out


def _note(t: Trace, out: Value, left: Value, right: Value, uses: bool) -> None:
    """Record parameters that are added or multiplied directly, outside any layer of torch."""
    for value, other in ((left, right), (right, left)):
        if value.parameter is not None and value.trains:
            size = entries_of_a_sample(t, value.axes)
            times = entries_of_a_sample(t, out.axes) // size if uses and size else 0
            t.layer("elementwise", {value: times}, [other], out)


@accepts_broadcast
def add(t: Trace, x: Value, other: Value | Number, alpha: Number = 1) -> Value:
    """x + alpha * other."""
    scaled = other if alpha == 1 else mul(t, other, alpha) if isinstance(other, Value) else other * alpha
    return _binary(t, "Add", x, scaled, lambda t, g, a, b, out: (g, g), uses=False)


@accepts_broadcast
def sub(t: Trace, x: Value | Number, other: Value | Number, alpha: Number = 1) -> Value:
    """x - alpha * other."""
    scaled = other if alpha == 1 else mul(t, other, alpha) if isinstance(other, Value) else other * alpha
    return _binary(t, "Sub", x, scaled, lambda t, g, a, b, out: (g, t.emit.one("Neg", g)), uses=False)


@accepts_broadcast
def rsub(t: Trace, x: Value, other: Value | Number, alpha: Number = 1) -> Value:
    """Other - alpha * x."""
    return sub(t, other, x, alpha)


@accepts_broadcast
def mul(t: Trace, x: Value, other: Value | Number) -> Value:
    """x * other."""

    def derivative(t: Trace, g: str, a: str, b: str, _out: str) -> tuple[str, str]:
        return t.emit.one("Mul", g, b), t.emit.one("Mul", g, a)

    return _binary(t, "Mul", x, other, derivative, uses=True)


@accepts_broadcast
def div(t: Trace, x: Value | Number, other: Value | Number, rounding_mode: str | None = None) -> Value:
    """x / other."""
    if rounding_mode is not None:
        raise ExportError(
            f"a division with rounding_mode={rounding_mode!r} has no gradient", fix="Divide without rounding."
        )

    def derivative(t: Trace, g: str, _a: str, b: str, out: str) -> tuple[str, str]:
        share = t.emit.one("Div", g, b)
        return share, t.emit.one("Neg", t.emit.one("Mul", share, out))

    if isinstance(x, Value) and x.dtype != "float32":
        x = type(x)(t.emit.one("Cast", x.name, to=1), x.axes)
    return _binary(t, "Div", x, other, derivative, uses=True)


def _extreme(kind: str, comparison: str) -> Callable[..., Value]:
    def derivative(t: Trace, g: str, a: str, b: str, _out: str) -> tuple[str, str]:
        # Where both are equal, each gets half.
        won = t.emit.one("Cast", t.emit.one(comparison, a, b), to=1)
        even = t.emit.one("Mul", t.emit.one("Cast", t.emit.one("Equal", a, b), to=1), t.emit.constant(0.5))
        share = t.emit.one("Mul", g, t.emit.one("Add", won, even))
        return share, t.emit.one("Sub", g, share)

    @accepts_broadcast
    def operation(t: Trace, x: Value, other: Value) -> Value:
        return _binary(t, kind, x, other, derivative, uses=False)

    return operation


def _compared(kind: str, negated: bool = False) -> Callable[..., Value]:
    @accepts_broadcast
    def operation(t: Trace, x: Value, other: Value | Number) -> Value:
        (left, right), axes = broadcast(t, *_promoted(t, [x, _value(t, other, x.dtype)]))
        if kind in ("And", "Or") and left.dtype != "bool":
            raise ExportError(f"{kind.lower()} of numbers ({left.dtype}) cannot be exported", fix="Compare them first.")
        name = t.emit.one(kind, left.name, right.name)
        return Value(t.emit.one("Not", name) if negated else name, axes, "bool")

    return operation


# One operand


def elementwise(t: Trace, x: Value, name: str, derivative: Callable[[str], str]) -> Value:
    """Return a function of every entry; `derivative` maps the gradient of the output to that of x."""
    out = t.value(name, x.axes, x)

    def backward(gradients: Sequence[str | None]) -> None:
        assert gradients[0] is not None
        t.add_gradient(x, derivative(gradients[0]))

    t.backward(out, backward)
    return out


def _function(kind: str, derivative: Callable[[Trace, str, str, str], str]) -> Callable[..., Value]:
    """Return an operation that is one ONNX node; `derivative` gets the gradient, the input and the output."""

    def operation(t: Trace, x: Value) -> Value:
        name = t.emit.one(kind, x.name)
        return elementwise(t, x, name, lambda grad: derivative(t, grad, x.name, name))

    return operation


def _mul(t: Trace, *names: str | float) -> str:
    product = ""
    for name in names:
        factor = name if isinstance(name, str) else t.emit.constant(name)
        product = t.emit.one("Mul", product, factor) if product else factor
    return product


def power(t: Trace, x: Value, exponent: Number) -> Value:
    """x to a constant power."""
    if exponent == 1:
        return x
    name = _power(t, x.name, float(exponent))
    return elementwise(t, x, name, lambda g: _mul(t, g, float(exponent), _power(t, x.name, float(exponent) - 1)))


def _power(t: Trace, name: str, exponent: float) -> str:
    if exponent in (1.0, 2.0):
        return name if exponent == 1.0 else t.emit.one("Mul", name, name)
    return t.emit.one("Pow", name, t.emit.constant(exponent))


def rsqrt(t: Trace, x: Value) -> Value:
    """One over the square root."""
    name = t.emit.one("Reciprocal", t.emit.one("Sqrt", x.name))
    return elementwise(t, x, name, lambda g: _mul(t, g, -0.5, name, name, name))


def clamp(t: Trace, x: Value, low: Number | None = None, high: Number | None = None) -> Value:
    """Entries limited to a range; the gradient passes inside it, including its ends."""
    limits = [t.emit.constant(float(limit)) if limit is not None else "" for limit in (low, high)]
    name = t.emit.one("Clip", x.name, *limits)

    def derivative(grad: str) -> str:
        inside = t.emit.one("Equal", x.name, name)
        return t.emit.one("Where", inside, grad, t.emit.constant(0.0))

    return elementwise(t, x, name, derivative)


def negated_flags(t: Trace, x: Value) -> Value:
    """Flags negated."""
    return Value(t.emit.one("Not", x.name), x.axes, "bool")


# Choices


@accepts_broadcast
def where(t: Trace, condition: Value, x: Value | Number, other: Value | Number) -> Value:
    """x where the condition holds, else the other."""
    like = next((value.dtype for value in (x, other) if isinstance(value, Value)), "float32")
    chosen = _promoted(t, [_value(t, x, like), _value(t, other, like)])
    (flags, left, right), axes = broadcast(t, condition, *chosen)
    name = t.emit.one("Where", flags.name, left.name, right.name)
    out = t.value(name, axes, left, right, dtype=left.dtype)
    zero = t.emit.constant(0.0)

    def backward(gradients: Sequence[str | None]) -> None:
        assert gradients[0] is not None
        if left.trains:
            t.add_gradient(left, reduced(t, t.emit.one("Where", flags.name, gradients[0], zero), axes, left))
        if right.trains:
            t.add_gradient(right, reduced(t, t.emit.one("Where", flags.name, zero, gradients[0]), axes, right))

    t.backward(out, backward)
    return out


@accepts_broadcast
def masked_fill(t: Trace, x: Value, mask: Value, value: Value | Number) -> Value:
    """x, with another number where the mask holds."""
    return where(t, mask, float(value) if not isinstance(value, Value) else value, x)


def _named(**families: tuple[Callable[..., Any], Sequence[str]]) -> dict[str, Callable[..., Any]]:
    """Return operations by name, including the in-place variants."""
    return {
        f"aten.{name}{suffix}.{overload}": operation
        for name, (operation, overloads) in families.items()
        for overload in overloads
        for suffix in ("", "_")
    }


_TWO, _ONE = ("Tensor", "Scalar"), ("default",)

OPERATIONS: dict[str, Callable[..., Any]] = {
    **_named(
        add=(add, _TWO),
        sub=(sub, _TWO),
        rsub=(rsub, _TWO),
        mul=(mul, _TWO),
        multiply=(mul, _TWO),
        div=(div, (*_TWO, "Tensor_mode", "Scalar_mode")),
        divide=(div, _TWO),
        true_divide=(div, _TWO),
        pow=(power, ("Tensor_Scalar", "Scalar")),
        eq=(_compared("Equal"), _TWO),
        ne=(_compared("Equal", negated=True), _TWO),
        gt=(_compared("Greater"), _TWO),
        ge=(_compared("GreaterOrEqual"), _TWO),
        lt=(_compared("Less"), _TWO),
        le=(_compared("LessOrEqual"), _TWO),
        logical_and=(_compared("And"), _ONE),
        logical_or=(_compared("Or"), _ONE),
        __and__=(_compared("And"), ("Tensor",)),
        __or__=(_compared("Or"), ("Tensor",)),
        bitwise_and=(_compared("And"), ("Tensor",)),
        bitwise_or=(_compared("Or"), ("Tensor",)),
        logical_not=(negated_flags, _ONE),
        bitwise_not=(negated_flags, _ONE),
        masked_fill=(masked_fill, _TWO),
        neg=(_function("Neg", lambda t, g, x, out: t.emit.one("Neg", g)), _ONE),
        exp=(_function("Exp", lambda t, g, x, out: _mul(t, g, out)), _ONE),
        log=(_function("Log", lambda t, g, x, out: t.emit.one("Div", g, x)), _ONE),
        sqrt=(_function("Sqrt", lambda t, g, x, out: t.emit.one("Div", _mul(t, g, 0.5), out)), _ONE),
        abs=(_function("Abs", lambda t, g, x, out: _mul(t, g, t.emit.one("Sign", x))), _ONE),
        sin=(_function("Sin", lambda t, g, x, out: _mul(t, g, t.emit.one("Cos", x))), _ONE),
        cos=(_function("Cos", lambda t, g, x, out: _mul(t, g, -1.0, t.emit.one("Sin", x))), _ONE),
        reciprocal=(_function("Reciprocal", lambda t, g, x, out: _mul(t, g, -1.0, out, out)), _ONE),
        square=(lambda t, x: power(t, x, 2), _ONE),
        rsqrt=(rsqrt, _ONE),
        clamp=(clamp, _ONE),
        clip=(clamp, _ONE),
        clamp_min=(clamp, _ONE),
        clamp_max=(lambda t, x, high: clamp(t, x, None, high), _ONE),
    ),
    "aten.maximum.default": _extreme("Max", "Greater"),
    "aten.minimum.default": _extreme("Min", "Less"),
    "aten.max.other": _extreme("Max", "Greater"),
    "aten.min.other": _extreme("Min", "Less"),
    "aten.where.self": where,
    "aten.where.ScalarOther": where,
    "aten.where.ScalarSelf": where,
    "aten.where.Scalar": where,
}
