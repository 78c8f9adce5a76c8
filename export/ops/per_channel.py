"""Scales and shifts every channel in one pass, with onnxruntime's BatchNormalization kernel.

The norms of this package use it on axis 1 of tensors of any rank. Measured, one thread, 32 x 32 x 28 x 28:

    scale and shift     BatchNormalization with given statistics    0.50 to 0.55 of Mul and Add
    standardise         its training mode                           0.37 to 0.42 of the elementwise form
                        statistics by reductions, then the kernel   0.86 to 0.94
    gradient            two products, two sums, Sub, the kernel     0.70 to 0.78 of the elementwise form

The same holds with two threads, though the kernel uses one. Its training mode is in every build but the minimal one.
"""

from onnx import TensorProto, helper

from export.trace import Trace

__all__ = ["filled", "standardise_gradient", "scale_and_shift", "standardise", "gradient_sums", "wide"]


def filled(t: Trace, shape: str, number: float) -> str:
    """Return a tensor of a shape with the same number everywhere."""
    value = helper.make_tensor("value", TensorProto.FLOAT, [1], [number])
    return t.emit.one("ConstantOfShape", shape, value=value)


def wide(t: Trace, vector: str, rank: int) -> str:
    """Return a vector over channels in a form that broadcasts over tensors of the given rank."""
    return vector if rank == 2 else t.emit.one("Unsqueeze", vector, t.emit.integers(*range(1, rank - 1)))


def scale_and_shift(t: Trace, x: str, scale: str, shift: str) -> str:
    """Return x * scale + shift, channel by channel."""
    shape = t.emit.one("Shape", scale)
    return t.emit.one("BatchNormalization", x, scale, shift, filled(t, shape, 0.0), filled(t, shape, 1.0), epsilon=0.0)


def standardise(t: Trace, x: str, scale: str, shift: str, eps: float) -> tuple[str, str, str]:
    """Return (x - mean) / sqrt(variance + eps) * scale + shift, and the mean and variance of every channel.

    In training mode the kernel overwrites the memory of its inputs 3 and 4 with the statistics, even if other nodes
    read them; with momentum 0 their values do not matter. So each call gets two tensors that nothing else reads, each
    filled with a number of its own, because an optimiser would merge equal ones.
    """
    shape = t.emit.one("Shape", x, start=1, end=2)
    number = 2.0 * t.number("standardise")
    memory = [filled(t, shape, number + 2), filled(t, shape, number + 3)]
    out, mean, variance = t.emit.node(
        "BatchNormalization", [x, scale, shift, *memory], outputs=3, epsilon=eps, momentum=0.0, training_mode=1
    )
    return out, mean, variance


def gradient_sums(t: Trace, grad: str, x: str, mean: str, rank: int) -> tuple[str, str]:
    """Return the sums over all axes but channels of a gradient, and of its product with x - mean."""
    axes = t.emit.integers(0, *range(2, rank))
    total = t.emit.one("ReduceSum", grad, axes, keepdims=0)
    product = t.emit.one("ReduceSum", t.emit.one("Mul", grad, x), axes, keepdims=0)
    return total, t.emit.one("Sub", product, t.emit.one("Mul", total, mean))


def standardise_gradient(
    t: Trace, grad: str, x: str, scale: str, statistics: tuple[str, str], sums: tuple[str, str], eps: float, rank: int
) -> str:
    """Return the gradient of what was standardised, by Ioffe and Szegedy, Batch Normalization (2015), section 3.

    With n numbers per channel, d = variance + eps and the sums of `gradient_sums`:
    scale / sqrt(d) * (grad - total / n - (x - mean) * aligned / (n d)).
    """
    (mean, variance), (total, aligned) = statistics, sums
    count = t.emit.one("Div", t.emit.one("Size", x), t.emit.one("Shape", x, start=1, end=2))
    count = t.emit.one("Cast", count, to=TensorProto.FLOAT)
    slope = t.emit.one("Div", aligned, t.emit.one("Mul", count, t.emit.one("Add", variance, t.emit.constant(eps))))
    level = t.emit.one("Sub", t.emit.one("Div", total, count), t.emit.one("Mul", slope, mean))
    rest = t.emit.one("Sub", grad, t.emit.one("Mul", x, wide(t, slope, rank)))
    zero = filled(t, t.emit.one("Shape", scale), 0.0)
    return t.emit.one("BatchNormalization", rest, scale, zero, level, variance, epsilon=eps)
