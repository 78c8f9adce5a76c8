"""Batch norm and instance norm: standardise every channel by statistics of the batch, of each sample, or running ones.

In training the new running statistics go to `trace.statistics`. Instance norm is batch norm on a view in which every
channel of every sample is its own channel. It uses the forms of `per_channel`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import TensorProto

from export.axes import unify
from export.constants import accepts_broadcast
from export.ops.arithmetic import add
from export.ops.per_channel import filled, gradient_sums, standardise, standardise_gradient
from export.trace import Trace, Value

__all__ = ["OPERATIONS"]


@dataclass(frozen=True, slots=True, eq=False)
class _Norm:
    """The arguments of both norms."""

    x: Value
    weight: Value | None
    bias: Value | None
    running_mean: Value | None
    running_var: Value | None
    eps: float

    @property
    def parameters(self) -> dict[Value, int]:
        positions = math.prod(self.x.shape[2:])
        stored = {self.weight: positions, self.bias: 0, self.running_mean: 0, self.running_var: 0}
        return {value: count for value, count in stored.items() if value is not None}

    def scale_and_shift(self, t: Trace) -> tuple[str, str]:
        """Return a scale and a shift for every channel, ones and zeros if the norm has no parameters."""
        shape = t.emit.one("Shape", self.x.name, start=1, end=2)
        scale = filled(t, shape, 1.0) if self.weight is None else self.weight.name
        return scale, filled(t, shape, 0.0) if self.bias is None else self.bias.name

    def finish(self, t: Trace, name: str) -> Value:
        sources = [value for value in (self.x, self.weight, self.bias) if value is not None]
        return t.layer("norm", self.parameters, [self.x], t.value(name, self.x.axes, *sources))

    def add_gradients(self, t: Trace, weight: str, bias: str) -> None:
        if self.weight is not None:
            t.add_gradient(self.weight, weight)
        if self.bias is not None:
            t.add_gradient(self.bias, bias)


def batch_norm(
    t: Trace,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
    _cudnn: bool = False,
) -> Value:
    """Standardise every channel over the batch; outside training, by the running statistics."""
    norm = _given(x, weight, bias, running_mean, running_var, eps)
    if not training and running_mean is not None and running_var is not None:
        return _by_running_statistics(t, norm, running_mean, running_var)
    rank = len(x.axes)
    scale, shift = norm.scale_and_shift(t)
    name, mean, variance = standardise(t, x.name, scale, shift, eps)
    if training:
        count = t.emit.one("Div", t.emit.one("Size", x.name), t.emit.one("Shape", x.name, start=1, end=2))
        _update_running(t, running_mean, mean, momentum)
        _update_running(t, running_var, _unbiased(t, variance, count), momentum)
    out = norm.finish(t, name)

    def backward(gradients: Sequence[str | None]) -> None:
        assert gradients[0] is not None
        sums = gradient_sums(t, gradients[0], x.name, mean, rank)
        norm.add_gradients(t, _over_deviation(t, sums[1], variance, eps), sums[0])
        if x.trains:
            statistics = (mean, variance)
            t.add_gradient(x, standardise_gradient(t, gradients[0], x.name, scale, statistics, sums, eps, rank))

    t.backward(out, backward)
    return out


def instance_norm(
    t: Trace,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    _cudnn: bool = False,
) -> Value:
    """Standardise every channel of every sample; outside training, by the running statistics if there are any."""
    norm = _given(x, weight, bias, running_mean, running_var, eps)
    if not use_input_stats and running_mean is not None and running_var is not None:
        return _by_running_statistics(t, norm, running_mean, running_var)
    positions = math.prod(x.shape[2:])
    rows = t.emit.integers(1, -1, positions)
    grid, whole = t.emit.one("Shape", x.name, start=0, end=2), t.emit.one("Shape", x.name)
    flat = t.emit.one("Reshape", x.name, rows)
    scale, shift = (_repeated(t, vector, grid) for vector in norm.scale_and_shift(t))
    name, mean, variance = standardise(t, flat, scale, shift, eps)
    if use_input_stats:
        _update_running(t, running_mean, _over_samples(t, "ReduceMean", mean, grid), momentum)
        unbiased = _unbiased(t, variance, t.emit.integers(positions))
        _update_running(t, running_var, _over_samples(t, "ReduceMean", unbiased, grid), momentum)
    out = norm.finish(t, t.emit.one("Reshape", name, whole))

    def backward(gradients: Sequence[str | None]) -> None:
        grad = t.emit.one("Reshape", str(gradients[0]), rows)
        sums = gradient_sums(t, grad, flat, mean, rank=3)
        slope = _over_deviation(t, sums[1], variance, eps)
        norm.add_gradients(t, *(_over_samples(t, "ReduceSum", part, grid) for part in (slope, sums[0])))
        if x.trains:
            passed = standardise_gradient(t, grad, flat, scale, (mean, variance), sums, eps, rank=3)
            t.add_gradient(x, t.emit.one("Reshape", passed, whole))

    t.backward(out, backward)
    return out


@accepts_broadcast
def add_in_place(t: Trace, x: Value, other: Value | float, alpha: float = 1) -> Value:
    """Count a batch if x is an integer buffer, whose new value is a statistic. Otherwise add as usual."""
    if x.parameter is None or x.dtype != "int64" or isinstance(other, Value):
        return add(t, x, other, alpha)
    # Clients may feed a scalar as an array of one entry; it leaves as a scalar.
    before = t.statistics.get(x.parameter, x).name
    before = t.emit.one("Reshape", before, t.emit.integers()) if not x.axes else before
    counted = t.emit.one("Add", before, t.emit.constant(int(alpha * other), "int64"))
    t.statistics[x.parameter] = Value(counted, x.axes, x.dtype)
    return t.statistics[x.parameter]


def _given(
    x: Value, weight: Value | None, bias: Value | None, mean: Value | None, variance: Value | None, eps: float
) -> _Norm:
    for value in (weight, bias, mean, variance):
        if value is not None:
            unify(value.axes[0], x.axes[1])
    return _Norm(x, weight, bias, mean, variance, eps)


def _by_running_statistics(t: Trace, norm: _Norm, mean: Value, variance: Value) -> Value:
    scale, shift = norm.scale_and_shift(t)
    statistics = [mean.name, variance.name]
    out = norm.finish(t, t.emit.one("BatchNormalization", norm.x.name, scale, shift, *statistics, epsilon=norm.eps))

    def backward(gradients: Sequence[str | None]) -> None:
        assert gradients[0] is not None
        total, aligned = gradient_sums(t, gradients[0], norm.x.name, mean.name, len(norm.x.axes))
        norm.add_gradients(t, _over_deviation(t, aligned, variance.name, norm.eps), total)
        if norm.x.trains:
            zero = filled(t, t.emit.one("Shape", scale), 0.0)
            passed = t.emit.one("BatchNormalization", gradients[0], scale, zero, zero, variance.name, epsilon=norm.eps)
            t.add_gradient(norm.x, passed)

    t.backward(out, backward)
    return out


def _update_running(t: Trace, buffer: Value | None, seen: str, momentum: float) -> None:
    """Move a running statistic towards the observed one."""
    if buffer is None or buffer.parameter is None:
        return
    before = t.statistics.get(buffer.parameter, buffer).name
    kept = t.emit.one("Mul", before, t.emit.constant(1 - momentum))
    new = t.emit.one("Add", kept, t.emit.one("Mul", seen, t.emit.constant(momentum)))
    t.statistics[buffer.parameter] = Value(new, buffer.axes)


def _unbiased(t: Trace, variance: str, count: str) -> str:
    """Return variance * n / (n - 1), which PyTorch stores."""
    number = t.emit.one("Cast", count, to=TensorProto.FLOAT)
    fewer = t.emit.one("Sub", number, t.emit.constant(1.0))
    return t.emit.one("Mul", variance, t.emit.one("Div", number, fewer))


def _over_deviation(t: Trace, aligned: str, variance: str, eps: float) -> str:
    return t.emit.one("Div", aligned, t.emit.one("Sqrt", t.emit.one("Add", variance, t.emit.constant(eps))))


def _repeated(t: Trace, vector: str, grid: str) -> str:
    """Repeat a vector over channels for every sample."""
    return t.emit.one("Reshape", t.emit.one("Expand", vector, grid), t.emit.integers(-1))


def _over_samples(t: Trace, kind: str, flat: str, grid: str) -> str:
    """Reduce one number per channel and sample to one number per channel."""
    return t.emit.one(kind, t.emit.one("Reshape", flat, grid), t.emit.integers(0), keepdims=0)


OPERATIONS: dict[str, Callable[..., Any]] = {
    "aten.add_.Tensor": add_in_place,
    "aten.batch_norm.default": batch_norm,
    "aten.instance_norm.default": instance_norm,
}
