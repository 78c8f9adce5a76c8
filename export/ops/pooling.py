"""Max pooling of images and sequences. The forward pass is MaxPool alone; the gradient goes to the first maximum.

    2 x 2, side by side     the positions of the maxima are computed by comparison (`_first_places`), then MaxUnpool
    other windows apart     MaxPool with its indices, then MaxUnpool
    windows that overlap    MaxPool with its indices, then ScatterElements, which adds

Measured on onnxruntime, one thread: MaxPool with indices takes 8 to 25 times as long as MaxPool alone, so code that
only reads the output should not request them. With computed positions, a 2 x 2 pool takes 0.34 (28 x 28, 112 x 112) to
0.65 (14 x 14) of the form with indices, forward and backward together; 1.4 at 7 x 7 and with 3 x 3 windows. MaxUnpool
takes 0.24 of ScatterElements; splitting overlapping windows into sets that are apart, 1.7 to 2.4.

In training a ReLU before a pool is moved after it, where there is less to rectify. Values and gradients are the same:
the largest entry of a window is the same before and after, and where none is positive no gradient passes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from export.axes import ConstantFactor
from export.ops.activations import relu
from export.ops.linear import matmul
from export.ops.per_channel import filled
from export.ops.pool_window import PoolWindow, check_rank, selected_entries, windows_of
from export.ops.shapes import transpose
from export.trace import Trace, Value

__all__ = ["OPERATIONS"]

LARGE = 12
"""From this size on, computing the positions of 2 x 2 windows is faster than letting MaxPool return them."""


def _max_pool(dimensions: int) -> Callable[..., Value]:
    def max_pool(
        t: Trace,
        x: Value,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> Value:
        """The largest entry of every window; of equals, the first gets the gradient."""
        return _largest(t, x, windows_of(x, dimensions, kernel, stride, padding, dilation, ceil_mode))

    return max_pool


def _largest(t: Trace, x: Value, windows: Sequence[PoolWindow]) -> Value:
    if t.training and x in t.rectified:
        return relu(t, _largest(t, t.rectified[x], windows))
    shape = {
        "kernel_shape": [w.kernel for w in windows],
        "strides": [w.stride for w in windows],
        "pads": [*(w.padding for w in windows), *(w.end_padding for w in windows)],
    }
    dilations = [w.dilation for w in windows]
    name = t.emit.one("MaxPool", x.name, dilations=dilations, **shape)
    out = t.value(name, (*x.axes[:2], *((ConstantFactor(w.count),) for w in windows)), x)

    def backward(gradients: Sequence[str | None]) -> None:
        grad, whole = str(gradients[0]), t.emit.one("Shape", x.name)
        if len(windows) == 2 and all(w.kernel == 2 and w.are_side_by_side and w.size >= LARGE for w in windows):
            places = _first_places(t, x, name, windows[0], windows[1])
        else:
            _, places = t.emit.node("MaxPool", [x.name], outputs=2, dilations=dilations, **shape)
        if all(w.are_apart for w in windows):
            t.add_gradient(x, t.emit.one("MaxUnpool", grad, places, whole, **shape))
            return
        line = t.emit.integers(-1)
        empty = filled(t, t.emit.one("Reshape", t.emit.one("Size", x.name), t.emit.integers(1)), 0.0)
        flat_places, flat = (t.emit.one("Reshape", part, line) for part in (places, grad))
        spread = t.emit.one("ScatterElements", empty, flat_places, flat, axis=0, reduction="add")
        t.add_gradient(x, t.emit.one("Reshape", spread, whole))

    t.backward(out, backward)
    return out


def _first_places(t: Trace, x: Value, largest: str, rows: PoolWindow, columns: PoolWindow) -> str:
    """Return the position of the first maximum of every window, as MaxPool would.

    Every entry gets a number that is smaller the later it comes in its window, 0 at the last; entries that are not a
    maximum get 0. The largest number in a window then gives the position of the first maximum.
    """
    height, width, line = rows.count * rows.kernel, columns.count * columns.kernel, columns.size
    places = np.arange(rows.kernel)[:, None] * line + np.arange(columns.kernel)
    numbers = np.tile(places.max() - places, (rows.count, columns.count))
    used = x.name
    if (height, width) != (rows.size, columns.size):
        used = t.emit.one("Slice", x.name, t.emit.integers(0, 0), t.emit.integers(height, width), t.emit.integers(2, 3))
    scales = t.emit.constant([1, 1, rows.kernel, columns.kernel])
    repeat = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    equal = t.emit.one("Equal", used, t.emit.one("Resize", largest, "", scales, **repeat))
    numbered = t.emit.one("Mul", t.emit.one("Cast", equal, to=TensorProto.FLOAT), t.emit.constant(numbers))
    shape = [rows.kernel, columns.kernel]
    first = t.emit.one("MaxPool", numbered, kernel_shape=shape, strides=shape)
    begins = np.arange(rows.count)[:, None] * rows.stride * line + np.arange(columns.count) * columns.stride
    ends = t.emit.constant(begins + places.max(), "int64")
    inside = t.emit.one("Sub", ends, t.emit.one("Cast", first, to=TensorProto.INT64))
    return t.emit.one("Add", inside, _begins_of_planes(t, x, rows.size * line))


def _begins_of_planes(t: Trace, x: Value, entries: int) -> str:
    """Return the index in the whole tensor at which every channel of every sample begins."""
    grid = t.emit.one("Shape", x.name, start=0, end=2)
    zero, one = (t.emit.constant(number, "int64") for number in (0, 1))
    planes = t.emit.one("Range", zero, t.emit.one("ReduceProd", grid, keepdims=0), one)
    begins = t.emit.one("Mul", planes, t.emit.constant(entries, "int64"))
    return t.emit.one("Unsqueeze", t.emit.one("Reshape", begins, grid), t.emit.integers(2, 3))


def _with_entries(t: Trace, x: Value, place: int, entries: Sequence[int]) -> Value:
    """Return some entries of an axis, perhaps repeated, by a product with zeros and ones."""
    size = x.shape[place]
    if entries == list(range(size)):
        return x
    axes = (ConstantFactor(size),), (ConstantFactor(len(entries)),)
    chosen = Value(t.emit.constant(np.eye(size, dtype=np.float32)[:, entries]), axes)
    return transpose(t, matmul(t, transpose(t, x, place, -1), chosen), place, -1)


def _adaptive_max_pool(dimensions: int) -> Callable[..., tuple[Value, None]]:
    def adaptive_max_pool(t: Trace, x: Value, sizes: Sequence[int]) -> tuple[Value, None]:
        """The largest entry of the requested number of windows, without the indices that PyTorch also returns."""
        check_rank(x, dimensions)
        kernel = []
        for place, count in enumerate(sizes, 2):
            entries = selected_entries(x.shape[place], count)
            kernel.append(len(entries) // count)
            x = _with_entries(t, x, place, entries)
        return _largest(t, x, windows_of(x, dimensions, kernel, kernel, (0,), (1,), False)), None

    return adaptive_max_pool


OPERATIONS: dict[str, Callable[..., Any]] = {
    "aten.max_pool1d.default": _max_pool(1),
    "aten.max_pool2d.default": _max_pool(2),
    "aten.adaptive_max_pool1d.default": _adaptive_max_pool(1),
    "aten.adaptive_max_pool2d.default": _adaptive_max_pool(2),
}
