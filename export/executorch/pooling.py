"""Pooling by comparing and adding shifted images.

ExecuTorch's own gradient of max pooling adds into memory that it never cleared (1.4.1), and its reductions over windows
are slow. Here a pool processes one tap of its windows at a time, each a strided copy of the image.

The gradient of a maximum goes to the first tap that has it, as in torch: a tap wins if it is larger than all taps
before it and no later one is larger than it.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from edgefl.errors import ExportError
from export.executorch.arithmetic import step
from export.executorch.strided import Pair, PatchWindow, interleaved, patches, strided

__all__ = [
    "adaptive_average_pool",
    "adaptive_average_pool_backward",
    "average_pool",
    "average_pool_backward",
    "max_pool",
    "max_pool_backward",
]

LOWEST = -3.0e38
"""What a max pool sees outside the image. Not minus infinity: the difference of two of them is undefined."""


def max_pool(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """Lower `aten.max_pool2d_with_indices`. The indices are empty, so that nothing can read them by mistake."""
    best, _ = _tournament(_taps(x, _window(x, kernel, stride, padding, dilation, ceil_mode)))
    return best, torch.zeros((0,), dtype=torch.int64)


def max_pool_backward(
    g: Tensor,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    _indices: Tensor,
) -> Tensor:
    """Lower `aten.max_pool2d_with_indices_backward`."""
    window = _window(x, kernel, stride, padding, dilation, ceil_mode)
    _, wins = _tournament(_taps(x, window))
    shares: list[Tensor] = []
    for won in reversed(wins):
        shares.append(g * won)
        g = g - shares[-1]
    return _spread([g, *reversed(shares)], window, (x.shape[2], x.shape[3]))


def _tournament(taps: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Return the largest of the taps, and for each but the first where it beats all before it."""
    best, wins = taps[0], []
    for tap in taps[1:]:
        won = step(tap - best)
        best = best - best * won + tap * won
        wins.append(won)
    return best, wins


def _window(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> PatchWindow:
    if x.dim() != 4:
        raise ExportError(
            f"a pool of a tensor with {x.dim()} axes cannot be trained by ExecuTorch",
            fix="Give it images with a batch axis: N x C x H x W.",
        )
    kernel, stride, padding, dilation = (_pair(sizes) for sizes in (kernel, stride or kernel, padding, dilation))
    out = []
    for size, k, s, p, d in zip(x.shape[2:], kernel, stride, padding, dilation, strict=True):
        room = size + 2 * p - d * (k - 1) - 1
        places = (math.ceil(room / s) if ceil_mode else room // s) + 1
        # With ceil mode the last window must still begin inside the image or the leading padding.
        out.append(places - 1 if ceil_mode and (places - 1) * s >= size + p else places)
    return PatchWindow(_pair(kernel), _pair(out), (-padding[0], -padding[1]), _pair(stride), _pair(dilation))


def _pair(sizes: Sequence[int]) -> Pair:
    return (sizes[0], sizes[-1])


def _taps(x: Tensor, window: PatchWindow) -> list[Tensor]:
    """Return one image for each tap of the windows, N x C x out."""
    (top, bottom), (left, right) = window.margins(0, x.shape[2]), window.margins(1, x.shape[3])
    if top or bottom or left or right:
        x = torch.ops.aten.constant_pad_nd.default(x, [left, right, top, bottom], LOWEST)
    count, channels, height, width = x.shape
    shape = (count, channels, *window.out)
    strides = (channels * height * width, height * width, window.stride[0] * width, window.stride[1])
    begin = (window.start[0] + top) * width + window.start[1] + left
    return [
        strided(x, shape, strides, begin + row * window.dilation[0] * width + column * window.dilation[1])
        for row, column in itertools.product(range(window.kernel[0]), range(window.kernel[1]))
    ]


def _spread(shares: list[Tensor], window: PatchWindow, size: Pair) -> Tensor:
    """Add the share of each tap of the windows to the pixel that it came from."""
    reach = (math.ceil(size[0] / window.stride[0]), math.ceil(size[1] / window.stride[1]))
    count, channels = shares[0].shape[:2]
    phases: dict[Pair, Tensor] = {}
    for share, tap in zip(shares, itertools.product(*map(range, window.kernel)), strict=True):
        places = [window.start[axis] + tap[axis] * window.dilation[axis] for axis in (0, 1)]
        phase = (places[0] % window.stride[0], places[1] % window.stride[1])
        shift = (-(places[0] // window.stride[0]), -(places[1] // window.stride[1]))
        moved = patches(share, PatchWindow((1, 1), reach, shift)).reshape(channels, count, *reach)
        phases[phase] = phases[phase] + moved if phase in phases else moved
    empty = shares[0].new_zeros((channels, count, *reach))
    every = itertools.product(range(window.stride[0]), range(window.stride[1]))
    return interleaved([phases.get(phase, empty) for phase in every], window.stride, size)


def average_pool(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor: int | None = None,
) -> Tensor:
    """Lower `aten.avg_pool2d`: a product of ones with the patches."""
    window = _window(x, kernel, stride, padding, (1, 1), ceil_mode)
    count, channels = x.shape[:2]
    summed = patches(x, window, groups=1)
    taps = math.prod(window.kernel)
    flat = torch.mm(x.new_ones((1, taps)), summed.reshape(taps, -1)).reshape(channels, count, *window.out)
    out = strided(flat, (count, channels, *window.out), _swapped_strides(flat))
    average: Tensor = out * _weights(x, window, padding, count_include_pad, divisor)
    return average


def average_pool_backward(
    g: Tensor,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Tensor:
    """Lower `aten.avg_pool2d_backward`."""
    window = _window(x, kernel, stride, padding, (1, 1), ceil_mode)
    share = g * _weights(x, window, padding, count_include_pad, divisor)
    count, channels, height, width = x.shape
    (rows, columns), (high, wide) = window.out, window.kernel
    if window.stride == window.kernel and (rows * high, columns * wide) == (height, width) and not any(padding):
        image = rows * columns
        repeated = strided(share, (count * channels, rows, high, columns, wide), (image, columns, 0, 1, 0))
        return repeated.reshape(x.shape)
    return _spread([share] * math.prod(window.kernel), window, (height, width))


def adaptive_average_pool(x: Tensor, out: Sequence[int]) -> Tensor:
    """Lower `aten._adaptive_avg_pool2d` if all windows have the same size."""
    return average_pool(x, _adaptive_kernel(x, out))


def adaptive_average_pool_backward(g: Tensor, x: Tensor) -> Tensor:
    """Lower `aten._adaptive_avg_pool2d_backward`."""
    kernel = _adaptive_kernel(x, g.shape[2:])
    return average_pool_backward(g, x, kernel, kernel, (0, 0), False, True, None)


def _adaptive_kernel(x: Tensor, out: Sequence[int]) -> Pair:
    (height, width), (rows, columns) = x.shape[-2:], out
    if x.dim() != 4 or height % rows or width % columns:
        raise ExportError(
            f"an adaptive average pool from {height} x {width} to {rows} x {columns} has windows of different sizes",
            fix="Choose an output size that divides the input's, or use a plain average pool.",
        )
    return height // rows, width // columns


def _swapped_strides(x: Tensor) -> tuple[int, ...]:
    first, second, *rest = x.stride()
    return second, first, *rest


def _weights(
    x: Tensor, window: PatchWindow, padding: Sequence[int], count_include_pad: bool, divisor: int | None
) -> Any:
    """Return the factor of every sum: a number, or one for each position where windows reach outside."""
    if divisor:
        return 1.0 / divisor
    lengths = []
    for axis, size in enumerate(x.shape[2:]):
        low, high = (-padding[-1 if axis else 0], size + padding[-1 if axis else 0]) if count_include_pad else (0, size)
        starts = [window.start[axis] + place * window.stride[axis] for place in range(window.out[axis])]
        lengths.append([min(start + window.kernel[axis], high) - max(start, low) for start in starts])
    if all(len(set(sizes)) == 1 for sizes in lengths):
        return 1.0 / (lengths[0][0] * lengths[1][0])
    down, across = (x.new_tensor(sizes) for sizes in lengths)
    return 1.0 / (down.reshape(-1, 1) * across.reshape(1, -1))
