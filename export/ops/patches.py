"""Convolutions of small maps: the patches of the whole batch as one matrix, and one product per direction.

onnxruntime multiplies image by image, and a map of 3 x 3 has nine columns: too few for its kernels, and the weights are
read again for every image. Here every position of every image is a row of taps times channels, gathered by a table that
the exporter writes; strides, dilations and padding are its entries. Channels come last, so a tap is copied at once.

Measured, one thread, batch 64 and 8, 3 x 3 kernels padded by 1, time relative to Conv, ConvTranspose and the products
of `convolution`:

    map       channels       forward         gradient of weight   of input
    2 x 2     512 to 512     0.39   0.69     0.73   0.61          0.17   0.33
    3 x 3     128 to 256     0.57   0.73     0.73   0.54          0.36   0.44
    4 x 4     128 to 128     0.85   0.91     0.67   0.58          0.56   0.67
    4 x 4     512 to 512     0.97   1.13     0.84   0.80          0.55   0.63
    7 x 7     64 to 128      0.91   0.89     0.90   0.77          0.94   0.79
    8 x 8     256 to 256     1.25   1.06     0.93   0.92          1.04   0.88
    14 x 14   32 to 64       1.35   1.03     1.09   0.85          1.42   1.08

It takes memory: at batch 32 a step of CNN4 takes 57 MB instead of 50, of VGG11 222 instead of 185, of PreResNet18 426
instead of 414.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from export.axes import Axis, ConstantFactor
from export.ops.conv_window import ConvWindow, channels_first
from export.trace import Trace, Value

__all__ = ["by_patches", "is_small"]

SMALL = 49
"""Positions of a map up to which patches are faster than onnxruntime's own convolution in every direction."""
MOST_READS = 441
"""Positions times taps, 3 x 3 of 7 x 7: the most input entries that a sample's patches may hold."""
SHORT_TAP = 8
"""Channels up to which a tap is too short to be worth its own copy."""

Table = npt.NDArray[np.int64]
"""The position that each tap reads, for every position of another map; the one after the last means outside."""


def is_small(x: Value, window: ConvWindow) -> bool:
    """Return whether a convolution is faster by patches."""
    positions, taps = math.prod(window.outside), math.prod(window.kernel)
    return positions <= SMALL and positions * taps <= MOST_READS and x.shape[1] > SHORT_TAP and taps > 1


def by_patches(
    t: Trace, x: Value, weight: Value, bias: Value | None, window: ConvWindow, axes: tuple[Axis, ...]
) -> tuple[str, Callable[[str], None]]:
    """Return a convolution, and the function that emits its gradients.

    Patches are gathered again for the gradient of the weight: keeping nine times the input until then takes too much
    memory. The two tables have different dtypes so that no optimiser merges them.
    """
    read = _read_by_taps(window)
    flat = t.emit.one("Flatten", _turned(t, _by_tap(t, weight)), axis=1)  # output channels; taps, input channels
    rows = _patches(t, x.name, t.emit.constant(read, "int32"))
    product = t.emit.one("Gemm", rows, flat, *([bias.name] if bias else []), transB=1)
    name = _as_images(t, product, (x.axes[0], weight.axes[0]), window.outside)

    def step(grad: str) -> None:
        if x.trains:
            t.add_gradient(x, _input_gradient(t, grad, x, weight, window, read))
        again = _patches(t, x.name, t.emit.constant(read, "int64"))
        total = t.emit.one("Gemm", channels_first(t, grad, axes), again)
        by_tap = t.emit.one("Reshape", total, t.emit.integers(0, read.shape[1], -1))
        t.add_gradient(weight, t.emit.one("Reshape", _turned(t, by_tap), t.emit.integers(0, 0, *window.kernel)))

    return name, step


def _input_gradient(t: Trace, grad: str, x: Value, weight: Value, window: ConvWindow, read: Table) -> str:
    """Return the gradient of the input: patches of the output's.

    With strides, or if the output is smaller, most of their taps would be outside.
    """
    if window.stride != (1, 1) or math.prod(window.inside) > math.prod(window.outside):
        return t.emit.one("ConvTranspose", grad, weight.name, **window.attributes(output_padding=window.output_padding))
    rows = _patches(t, grad, t.emit.constant(_readers(read, math.prod(window.inside)), "int64"))
    flat = t.emit.one("Flatten", t.emit.one("Transpose", _by_tap(t, weight), perm=[2, 0, 1]), axis=2)
    return _as_images(t, t.emit.one("Gemm", rows, flat), x.axes[:2], window.inside)


def _read_by_taps(window: ConvWindow) -> Table:
    """Return what taps read of the input, at every position of the output."""
    height, width = window.inside
    table = np.full((*window.outside, *window.kernel), height * width)
    for row, column, down, right in np.ndindex(table.shape):
        y = row * window.stride[0] + down * window.dilation[0] - window.padding[0]
        x = column * window.stride[1] + right * window.dilation[1] - window.padding[1]
        if 0 <= y < height and 0 <= x < width:
            table[row, column, down, right] = y * width + x
    return table.reshape(math.prod(window.outside), -1)


def _readers(read: Table, positions: int) -> Table:
    """Return the inverse of a table: the position from which every tap reads each of `positions` positions."""
    table = np.full((positions + 1, read.shape[1]), len(read))
    for position, tap in np.ndindex(read.shape):
        table[read[position, tap], tap] = position
    return table[:-1]


def _patches(t: Trace, images: str, table: str) -> str:
    """Return a row of taps and channels for every position of every sample."""
    positions = _turned(t, t.emit.one("Reshape", images, t.emit.integers(0, 0, -1)))
    and_nothing = t.emit.one("Pad", positions, t.emit.integers(0, 0, 0, 0, 1, 0))
    return t.emit.one("Flatten", t.emit.one("Gather", and_nothing, table, axis=1), axis=2)


def _as_images(t: Trace, rows: str, axes: tuple[Axis, ...], size: tuple[int, int]) -> str:
    """Return rows of channels, one for every position of every sample, as images."""
    samples, channels = axes
    by_position = t.emit.one("Reshape", rows, t.shape([samples, (ConstantFactor(size[0] * size[1]),), channels]))
    return t.emit.one("Reshape", _turned(t, by_position), t.emit.integers(0, 0, *size))


def _by_tap(t: Trace, weight: Value) -> str:
    return t.emit.one("Reshape", weight.name, t.emit.integers(0, 0, -1))


def _turned(t: Trace, name: str) -> str:
    return t.emit.one("Transpose", name, perm=[0, 2, 1])
