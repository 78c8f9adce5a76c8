"""Convolutions as matrix products, ExecuTorch's fast kernels.

Three maps are enough. With x the larger image, g the smaller one and w the kernel between them,

    correlation(x, w) -> g         one product with the patches of x
    adjoint(g, w) -> x             one product with the patches of g for each phase of the stride
    kernel_gradient(x, g) -> w     one product of the patches of x with g

A convolution's forward pass and its two gradients are these three; a transposed convolution's are the second, the
first and the third. Groups become batches of products. Only small operands are ever transposed.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from edgefl.errors import ExportError
from export.executorch.arithmetic import product
from export.executorch.strided import Pair, PatchWindow, interleaved, patches, strided, swapped

__all__ = ["convolution", "convolution_backward"]


@dataclass(frozen=True, slots=True)
class Geometry:
    """How the smaller image lies on the larger one."""

    stride: Pair
    padding: Pair
    dilation: Pair
    groups: int


def correlation(x: Tensor, weight: Tensor, geometry: Geometry, out: Pair) -> Tensor:
    """Slide the kernel over the image."""
    groups, width = geometry.groups, weight.shape[0]
    columns = _columns(x, weight, geometry, out)
    rows = weight.reshape(groups, width // groups, -1)
    return swapped(product(rows, columns).reshape(width, x.shape[0], *out))


def kernel_gradient(x: Tensor, g: Tensor, weight: Tensor, geometry: Geometry) -> Tensor:
    """Compute how each tap of the kernel pairs the larger image with the smaller one."""
    count, width, *out = g.shape
    groups, image = geometry.groups, math.prod(out)
    each = width // groups
    columns = _columns(x, weight, geometry, (out[0], out[1]))
    last = strided(g, (groups, count, image, each), (each * image, width * image, 1, image))
    paired = product(columns, last.reshape(groups, count * image, each))
    taps = columns.shape[1]
    return strided(paired, (groups, each, taps), (taps * each, 1, each)).reshape(weight.shape)


def adjoint(g: Tensor, weight: Tensor, geometry: Geometry, size: Pair) -> Tensor:
    """Spread the smaller image over the larger one: the transpose of `correlation`.

    Rows y of the larger image with the same y % stride are reached by the same taps, from consecutive rows of g. So
    every such phase is a plain correlation with a part of the kernel, and no zeros are multiplied.
    """
    count = g.shape[0]
    channels = weight.shape[1] * geometry.groups
    reach = (math.ceil(size[0] / geometry.stride[0]), math.ceil(size[1] / geometry.stride[1]))
    phases = []
    for phase in itertools.product(range(geometry.stride[0]), range(geometry.stride[1])):
        rows, columns = (_taps(weight.shape[2 + axis], phase[axis], geometry, axis) for axis in (0, 1))
        if rows and columns:
            found = _phase(g, weight, rows, columns, geometry.groups, reach)
        else:
            found = g.new_zeros((channels, count, *reach))
        phases.append(found.reshape(channels, count, *reach))
    return interleaved(phases, geometry.stride, size)


def _taps(kernel: int, phase: int, geometry: Geometry, axis: int) -> list[Pair]:
    """Return the taps that reach a phase, with the row of g where each starts; the rows ascend.

    Row o of g and tap k meet row y of the larger image where y + padding = o * stride + k * dilation.
    """
    stride, padding, dilation = geometry.stride[axis], geometry.padding[axis], geometry.dilation[axis]
    shifts = [(tap, phase + padding - tap * dilation) for tap in reversed(range(kernel))]
    return [(tap, shift // stride) for tap, shift in shifts if shift % stride == 0]


def _phase(g: Tensor, weight: Tensor, rows: list[Pair], columns: list[Pair], groups: int, reach: Pair) -> Tensor:
    width, each, *kernel = weight.shape
    area, inside = kernel[0] * kernel[1], width // groups
    taps = [row * kernel[1] + column for (row, _), (column, _) in itertools.product(rows, columns)]
    left = strided(weight, (groups, each, area, inside), (inside * each * area, area, 1, each * area))
    if taps != list(range(area)):
        left = left.index_select(2, torch.tensor(taps))
    window = PatchWindow(
        kernel=(len(rows), len(columns)),
        out=reach,
        start=(rows[0][1], columns[0][1]),
        dilation=(_step(rows), _step(columns)),
    )
    right = patches(g, window, groups=groups)
    return product(left.reshape(groups, each, -1), right.reshape(groups, len(taps) * inside, -1))


def _step(taps: list[Pair]) -> int:
    return taps[1][1] - taps[0][1] if len(taps) > 1 else 1


def _columns(x: Tensor, weight: Tensor, geometry: Geometry, out: Pair) -> Tensor:
    window = PatchWindow(
        kernel=(weight.shape[2], weight.shape[3]),
        out=out,
        start=(-geometry.padding[0], -geometry.padding[1]),
        stride=geometry.stride,
        dilation=geometry.dilation,
    )
    return patches(x, window).reshape(geometry.groups, weight.shape[1] * weight.shape[2] * weight.shape[3], -1)


def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Lower `aten.convolution`."""
    if x.dim() == 3:
        geometry_2d = ([1, *stride], [0, *padding], [1, *dilation], transposed, [0, *output_padding])
        return convolution(x.unsqueeze(2), weight.unsqueeze(2), bias, *geometry_2d, groups).squeeze(2)
    geometry = _geometry(x, stride, padding, dilation, groups)
    if transposed:
        sizes = (
            (size - 1) * s - 2 * p + d * (k - 1) + extra + 1
            for size, k, s, p, d, extra in zip(
                x.shape[2:], weight.shape[2:], stride, padding, dilation, output_padding, strict=True
            )
        )
        out = adjoint(x, weight, geometry, (next(sizes), next(sizes)))
    else:
        sizes = (
            (size + 2 * p - d * (k - 1) - 1) // s + 1
            for size, k, s, p, d in zip(x.shape[2:], weight.shape[2:], stride, padding, dilation, strict=True)
        )
        out = correlation(x, weight, geometry, (next(sizes), next(sizes)))
    return out if bias is None else out + bias.reshape(1, -1, 1, 1)


def convolution_backward(
    g: Tensor,
    x: Tensor,
    weight: Tensor,
    _bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Lower `aten.convolution_backward`: gradients of the input, the weight and the bias, as wanted."""
    if x.dim() == 3:
        g, x, weight = g.unsqueeze(2), x.unsqueeze(2), weight.unsqueeze(2)
        sizes = ([1, *stride], [0, *padding], [1, *dilation])
        of_x, of_weight, of_bias = convolution_backward(
            g, x, weight, None, *sizes, transposed, [0, *output_padding], groups, wanted
        )
        return _flat(of_x), _flat(of_weight), of_bias
    geometry = _geometry(x, stride, padding, dilation, groups)
    size = (x.shape[2], x.shape[3])
    of_x = of_weight = None
    if wanted[0]:
        of_x = (correlation if transposed else adjoint)(g, weight, geometry, size)
    if wanted[1]:
        larger, smaller = (g, x) if transposed else (x, g)
        of_weight = kernel_gradient(larger, smaller, weight, geometry)
    return of_x, of_weight, g.sum((0, 2, 3)) if wanted[2] else None


def _geometry(
    x: Tensor, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], groups: int
) -> Geometry:
    if x.dim() != 4:
        raise ExportError(
            f"a convolution in {x.dim() - 2} dimensions cannot be trained by ExecuTorch",
            fix="Use convolutions in one or two dimensions, or export the model to ONNX.",
        )
    return Geometry((stride[0], stride[1]), (padding[0], padding[1]), (dilation[0], dilation[1]), groups)


def _flat(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.squeeze(2)
