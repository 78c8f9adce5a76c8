"""The strided copy that everything else is built on.

ExecuTorch's kernels for permute, slice, expand, flip and unfold compute the coordinates of every element. The kernel of
`as_strided_copy` runs a tight loop along the last axis instead, and is 5 to 15 times faster. So patches, permutations,
slices and interleavings are all written as one strided copy of a contiguous tensor.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Pair", "PatchWindow", "contiguous_strides", "interleaved", "patches", "strided", "swapped"]

aten = torch.ops.aten

Pair = tuple[int, int]
"""One number for the height and one for the width."""


def strided(x: Tensor, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Tensor:
    """Return a new tensor whose entry at (i, j, ...) is entry `offset + i * strides[0] + ...` of `x`."""
    copied: Tensor = aten.as_strided_copy.default(x.contiguous(), list(shape), list(strides), offset)
    return copied


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    return tuple(math.prod(shape[place + 1 :]) for place in range(len(shape)))


def swapped(x: Tensor) -> Tensor:
    """Exchange the first two axes."""
    first, second, *rest = x.shape
    inner = math.prod(rest)
    return strided(x, (second, first, *rest), (inner, second * inner, *contiguous_strides(rest)))


@dataclass(frozen=True, slots=True)
class PatchWindow:
    """Positions of patches on an image: patch (p, q) has its tap (i, j) at start + stride * (p, q) + dilation *
    (i, j)."""

    kernel: Pair
    out: Pair
    start: Pair
    """Where the first patch begins. It may be before the image, and the last patch may end after it."""
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)

    def margins(self, axis: int, size: int) -> Pair:
        """Return how far the patches reach beyond an image of this size, before and after it."""
        begin = self.start[axis] + (self.out[axis] - 1) * self.stride[axis]
        last = begin + (self.kernel[axis] - 1) * self.dilation[axis]
        return max(0, -self.start[axis]), max(0, last - size + 1)


def patches(x: Tensor, window: PatchWindow, *, groups: int | None = None, fill: float = 0.0) -> Tensor:
    """Return the patches of N x C x H x W images: channels, kernel, N, out. Positions outside an image are `fill`.

    With `groups` the channels are divided and the taps come first within a group: groups, kernel, C/groups, N, out.
    """
    (top, bottom), (left, right) = window.margins(0, x.shape[2]), window.margins(1, x.shape[3])
    if top or bottom or left or right:
        x = aten.constant_pad_nd.default(x, [left, right, top, bottom], fill)
    count, channels, height, width = x.shape
    image = height * width
    inside = channels // (groups or channels)
    (down, across), (step_down, step_across) = window.dilation, window.stride
    return strided(
        x,
        (channels // inside, *window.kernel, *([inside] if groups else []), count, *window.out),
        (
            *(inside * image, down * width, across),
            *([image] if groups else []),
            *(channels * image, step_down * width, step_across),
        ),
        (window.start[0] + top) * width + window.start[1] + left,
    )


def interleaved(phases: Sequence[Tensor], stride: Pair, size: Pair) -> Tensor:
    """Interleave images: N x C x size from `stride[0] * stride[1]` images of shape C x N x h x w.

    Pixel (y, x) comes from pixel (y // stride, x // stride) of phase (y % stride, x % stride).
    """
    if stride == (1, 1):
        return swapped(phases[0])
    channels, count, height, width = phases[0].shape
    stacked = torch.cat(list(phases)) if len(phases) > 1 else phases[0]
    image = height * width
    phase = channels * count * image
    woven = strided(
        stacked,
        (count, channels, height, stride[0], width, stride[1]),
        (image, count * image, width, stride[1] * phase, 1, phase),
    ).reshape(count, channels, height * stride[0], width * stride[1])
    if tuple(woven.shape[2:]) == tuple(size):
        return woven
    return strided(woven, (count, channels, *size), woven.stride())
