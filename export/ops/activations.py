"""Elementwise activations, each with a derivative that reuses results of its forward pass.

Measured on onnxruntime, one thread, 32 x 32 x 28 x 28 numbers, the gradient of ReLU:

    Greater, Where              1.00
    Greater, Cast, Mul          0.78
    HardSigmoid, Mul            0.60    a slope of 3.4e38 makes it a step: 0 at 0, 1 from the smallest normal number on

Sign is slower than all of them. Two-sided gates (ReLU6) are best as two comparisons, And, Cast, Mul: 0.79 of Where.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from onnx import TensorProto

from edgefl.errors import ExportError
from export.trace import Trace, Value

__all__ = ["OPERATIONS", "relu"]

Slope = Callable[[], str]
"""Emits the derivative of the output with respect to the input."""

STEEP = 3.4e38


def _elementwise(t: Trace, x: Value, name: str, slope: Slope) -> Value:
    """Return the output of an activation whose gradient is multiplied by a slope."""
    out = t.value(name, x.axes, x)

    def backward(gradients: Sequence[str | None]) -> None:
        assert gradients[0] is not None
        t.add_gradient(x, t.emit.one("Mul", gradients[0], slope()))

    t.backward(out, backward)
    return out


def _step(t: Trace, name: str) -> str:
    """Return 1 where a number is positive, else 0."""
    return t.emit.one("HardSigmoid", name, alpha=STEEP, beta=0.0)


def _between(t: Trace, name: str, low: float, high: float) -> str:
    """Return 1 where a number is between two others, else 0."""
    above = t.emit.one("Greater", name, t.emit.constant(low))
    below = t.emit.one("Less", name, t.emit.constant(high))
    return t.emit.one("Cast", t.emit.one("And", above, below), to=TensorProto.FLOAT)


def _scaled(t: Trace, name: str, factor: float) -> str:
    return name if factor == 1 else t.emit.one("Mul", name, t.emit.constant(factor))


def _plus(t: Trace, name: str, number: float) -> str:
    return t.emit.one("Add", name, t.emit.constant(number))


def _one_minus(t: Trace, name: str) -> str:
    return t.emit.one("Sub", t.emit.constant(1.0), name)


def relu(t: Trace, x: Value) -> Value:
    """max(x, 0)."""
    name = t.emit.one("Relu", x.name)
    out = _elementwise(t, x, name, lambda: _step(t, name))
    t.rectified[out] = x
    return out


def hardtanh(t: Trace, x: Value, low: float = -1.0, high: float = 1.0) -> Value:
    """x, kept between two numbers."""
    name = t.emit.one("Clip", x.name, t.emit.constant(low), t.emit.constant(high))
    return _elementwise(t, x, name, lambda: _between(t, name, low, high))


def relu6(t: Trace, x: Value) -> Value:
    """min(max(x, 0), 6)."""
    return hardtanh(t, x, 0.0, 6.0)


def leaky_relu(t: Trace, x: Value, negative_slope: float = 0.01) -> Value:
    """x where it is positive, else negative_slope * x."""
    name = t.emit.one("LeakyRelu", x.name, alpha=negative_slope)
    return _elementwise(t, x, name, lambda: _plus(t, _scaled(t, _step(t, x.name), 1 - negative_slope), negative_slope))


def elu(t: Trace, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    """scale * x where it is positive, else scale * alpha * (exp(input_scale * x) - 1)."""
    positive = t.emit.one("Greater", x.name, t.emit.constant(0.0))
    power = t.emit.one("Exp", _scaled(t, t.emit.one("Min", x.name, t.emit.constant(0.0)), input_scale))
    below = _scaled(t, _plus(t, power, -1.0), alpha * scale)
    name = t.emit.one("Where", positive, _scaled(t, x.name, scale), below)

    def slope() -> str:
        return t.emit.one("Where", positive, t.emit.constant(scale), _scaled(t, power, alpha * scale * input_scale))

    return _elementwise(t, x, name, slope)


def selu(t: Trace, x: Value) -> Value:
    """ELU with the constants of Klambauer et al., Self-Normalizing Neural Networks (2017)."""
    return elu(t, x, alpha=1.6732632423543772, scale=1.0507009873554805)


def celu(t: Trace, x: Value, alpha: float = 1.0) -> Value:
    """ELU of x / alpha, times alpha."""
    return elu(t, x, alpha=alpha, input_scale=1 / alpha)


def gelu(t: Trace, x: Value, approximate: str = "none") -> Value:
    """x * P(a standard normal number is below x); its tanh form replaces P as in Hendrycks and Gimpel (2016)."""
    if approximate == "tanh":
        return _gelu_by_tanh(t, x)
    below = _plus(t, _scaled(t, t.emit.one("Erf", _scaled(t, x.name, math.sqrt(0.5))), 0.5), 0.5)

    def slope() -> str:  # P(x) + x * density(x)
        power = t.emit.one("Exp", _scaled(t, t.emit.one("Mul", x.name, x.name), -0.5))
        density = _scaled(t, power, 1 / math.sqrt(2 * math.pi))
        return t.emit.one("Add", below, t.emit.one("Mul", x.name, density))

    return _elementwise(t, x, t.emit.one("Mul", x.name, below), slope)


def _gelu_by_tanh(t: Trace, x: Value) -> Value:
    first, third = math.sqrt(2 / math.pi), 0.044715 * math.sqrt(2 / math.pi)
    square = t.emit.one("Mul", x.name, x.name)
    inner = t.emit.one("Mul", x.name, _plus(t, _scaled(t, square, third), first))
    tanh = t.emit.one("Tanh", inner)
    below = _plus(t, _scaled(t, tanh, 0.5), 0.5)

    def slope() -> str:
        bend = _scaled(t, _one_minus(t, t.emit.one("Mul", tanh, tanh)), 0.5)
        inner_slope = _plus(t, _scaled(t, square, 3 * third), first)
        return t.emit.one("Add", below, t.emit.one("Mul", x.name, t.emit.one("Mul", bend, inner_slope)))

    return _elementwise(t, x, t.emit.one("Mul", x.name, below), slope)


def sigmoid(t: Trace, x: Value) -> Value:
    """1 / (1 + exp(-x))."""
    name = t.emit.one("Sigmoid", x.name)
    return _elementwise(t, x, name, lambda: t.emit.one("Mul", name, _one_minus(t, name)))


def tanh(t: Trace, x: Value) -> Value:
    """The hyperbolic tangent."""
    name = t.emit.one("Tanh", x.name)
    return _elementwise(t, x, name, lambda: _one_minus(t, t.emit.one("Mul", name, name)))


def silu(t: Trace, x: Value) -> Value:
    """x * sigmoid(x)."""
    gate = t.emit.one("Sigmoid", x.name)
    name = t.emit.one("Mul", x.name, gate)
    # gate + x * gate * (1 - gate)
    return _elementwise(t, x, name, lambda: t.emit.one("Add", gate, t.emit.one("Mul", name, _one_minus(t, gate))))


def hardsigmoid(t: Trace, x: Value) -> Value:
    """relu6(x + 3) / 6."""
    name = t.emit.one("HardSigmoid", x.name, alpha=1 / 6, beta=0.5)
    return _elementwise(t, x, name, lambda: _scaled(t, _between(t, x.name, -3.0, 3.0), 1 / 6))


def hardswish(t: Trace, x: Value) -> Value:
    """x * relu6(x + 3) / 6."""
    gate = t.emit.one("HardSigmoid", x.name, alpha=1 / 6, beta=0.5)

    def slope() -> str:
        bend = _scaled(t, _between(t, x.name, -3.0, 3.0), 1 / 6)
        return t.emit.one("Add", gate, t.emit.one("Mul", x.name, bend))

    return _elementwise(t, x, t.emit.one("Mul", x.name, gate), slope)


def softplus(t: Trace, x: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above the threshold."""
    inner = _scaled(t, x.name, beta)
    name = _scaled(t, t.emit.one("Softplus", inner), 1 / beta)
    if threshold >= 17:  # from there on both branches give the same float32
        return _elementwise(t, x, name, lambda: t.emit.one("Sigmoid", inner))
    above = t.emit.one("Greater", inner, t.emit.constant(threshold))
    name = t.emit.one("Where", above, x.name, name)
    return _elementwise(
        t, x, name, lambda: t.emit.one("Where", above, t.emit.constant(1.0), t.emit.one("Sigmoid", inner))
    )


def softmax(t: Trace, x: Value, dim: int, dtype: object = None) -> Value:
    """exp(x) over its sum along an axis."""
    _only_float32(dtype)
    name = t.emit.one("Softmax", x.name, axis=dim)
    out = t.value(name, x.axes, x)

    def backward(gradients: Sequence[str | None]) -> None:  # y * (g - sum(g * y))
        product = t.emit.one("Mul", str(gradients[0]), name)
        total = t.emit.one("ReduceSum", product, t.emit.integers(dim), keepdims=1)
        t.add_gradient(x, t.emit.one("Sub", product, t.emit.one("Mul", name, total)))

    t.backward(out, backward)
    return out


def log_softmax(t: Trace, x: Value, dim: int, dtype: object = None) -> Value:
    """The logarithm of softmax."""
    _only_float32(dtype)
    name = t.emit.one("LogSoftmax", x.name, axis=dim)
    out = t.value(name, x.axes, x)

    def backward(gradients: Sequence[str | None]) -> None:  # g - softmax * sum(g)
        total = t.emit.one("ReduceSum", str(gradients[0]), t.emit.integers(dim), keepdims=1)
        share = t.emit.one("Mul", t.emit.one("Exp", name), total)
        t.add_gradient(x, t.emit.one("Sub", str(gradients[0]), share))

    t.backward(out, backward)
    return out


def _only_float32(dtype: object) -> None:
    if dtype is not None and str(dtype) != "torch.float32":
        raise ExportError(f"a softmax in {dtype} is not supported", fix="Omit its dtype: it is computed in float32.")


ACTIVATIONS: dict[str, Callable[..., Value]] = {
    "relu": relu,
    "relu6": relu6,
    "hardtanh": hardtanh,
    "leaky_relu": leaky_relu,
    "elu": elu,
    "selu": selu,
    "celu": celu,
    "gelu": gelu,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "silu": silu,
    "hardsigmoid": hardsigmoid,
    "hardswish": hardswish,
    "softplus": softplus,
}

OPERATIONS: dict[str, Callable[..., Any]] = {
    **{f"aten.{name}.default": activation for name, activation in ACTIVATIONS.items()},
    **{f"aten.{name}_.default": activation for name, activation in ACTIVATIONS.items()},  # in place
    "aten.softmax.int": softmax,
    "aten.log_softmax.int": log_softmax,
}
