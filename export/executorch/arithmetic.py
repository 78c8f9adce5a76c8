"""Products, sums and broadcasting in the forms whose kernels are fast.

`mm` and `bmm` are ExecuTorch's only optimised products, and need both operands contiguous. Sums are products with ones.
Elementwise operations are fast on equal shapes, on a matrix with a column, and on a matrix with a row; any other
broadcasting goes element by element.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from export.executorch.strided import strided

__all__ = [
    "add_product",
    "broadcast",
    "hardtanh_backward",
    "leaky_relu_backward",
    "matrix_product",
    "mean",
    "power",
    "product",
    "step",
    "threshold_backward",
    "total",
]

aten = torch.ops.aten

LARGEST = 3.0e38
"""Nearly the largest float32. Any positive number times this is above 1, unless it is subnormal."""


def product(left: Tensor, right: Tensor) -> Tensor:
    """Multiply batches of matrices."""
    if left.shape[0] == 1:
        return torch.mm(left.reshape(left.shape[1:]), right.reshape(right.shape[1:])).unsqueeze(0)
    return torch.bmm(left, right)


def matrix_product(left: Tensor, right: Tensor) -> Any:
    """Lower `aten.mm` of operands of which one or both are transposed views.

    A linear layer multiplies by its transposed weight. Rather than copy the weight, transpose the batch and the result
    where they are smaller: x w' = (w x')'.
    """
    rows, inner = left.shape
    columns = right.shape[1]
    if left.is_contiguous() and right.is_contiguous():
        return NotImplemented
    if not right.is_contiguous() and rows * (inner + columns) < inner * columns:
        return transposed(torch.mm(right.t().contiguous(), transposed(left)))
    return torch.mm(left.contiguous(), right.contiguous())


def transposed(x: Tensor) -> Tensor:
    """Return the transpose, contiguous."""
    return x.t() if x.t().is_contiguous() else strided(x, (x.shape[1], x.shape[0]), (1, x.shape[1]))


def add_product(bias: Tensor, left: Tensor, right: Tensor, *, beta: float = 1, alpha: float = 1) -> Any:
    """Lower `aten.addmm`."""
    out = torch.mm(left, right)
    out = out if alpha == 1 else out * alpha
    return out + (bias if beta == 1 else bias * beta)


def total(
    x: Tensor, axes: Sequence[int] | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Any:
    """Lower `aten.sum`: axes at the end or at the beginning are summed by a product with ones."""
    axes = sorted(axis % x.dim() for axis in (axes or range(x.dim())))
    if x.dtype != torch.float32 or dtype not in (None, torch.float32) or x.dim() == 0:
        return NotImplemented
    kept = [axis for axis in range(x.dim()) if axis not in axes]
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    if not kept:
        before, between, after = 1, 1, x.numel()
    elif kept != list(range(kept[0], kept[-1] + 1)):
        return NotImplemented
    else:
        before, between = math.prod(x.shape[: kept[0]]), math.prod(x.shape[axis] for axis in kept)
        after = math.prod(x.shape[kept[-1] + 1 :])
    if after > 1:
        x = torch.mm(x.reshape(before * between, after), x.new_ones((after, 1)))
    if before > 1:
        x = torch.mm(x.new_ones((1, before)), x.reshape(before, between))
    return x.reshape(shape if keepdim else [x for axis, x in enumerate(shape) if axis in kept])


def mean(
    x: Tensor, axes: Sequence[int] | None = None, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Any:
    """Lower `aten.mean`."""
    found = total(x, axes, keepdim, dtype=dtype)
    return found if found is NotImplemented else found * (found.numel() / x.numel())


def broadcast(operation: Callable[..., Tensor]) -> Callable[..., Any]:
    """Lower an elementwise operation of two tensors so that its kernel sees a matrix with a column or a row."""

    def lowered(left: Tensor | float, right: Tensor | float, **settings: Any) -> Any:
        if not isinstance(left, Tensor) or not isinstance(right, Tensor):
            return NotImplemented
        if left.dtype != torch.float32 or right.dtype != torch.float32:
            return NotImplemented
        large, small = (left, right) if left.numel() > right.numel() else (right, left)
        seen = _matrix(large, small)
        if seen is None:
            return NotImplemented
        return operation(*(seen if large is left else reversed(seen)), **settings).reshape(large.shape)

    return lowered


def _matrix(large: Tensor, small: Tensor) -> tuple[Tensor, Tensor] | None:
    """View a tensor as a matrix so that the smaller one is a column or a row of it. None if it is already, or cannot
    be."""
    sizes = [1] * (large.dim() - small.dim()) + list(small.shape)
    full = [place for place, size in enumerate(sizes) if size > 1]
    if not full or small.dim() > large.dim() or small.numel() == large.numel():
        return None
    first, last = full[0], full[-1] + 1
    if sizes[first:last] != list(large.shape[first:last]) or (large.dim() == 2 and last - first == 1):
        return None
    before, between = math.prod(large.shape[:first]), math.prod(large.shape[first:last])
    after = math.prod(large.shape[last:])
    if after == 1:
        return large.reshape(before, between), small.reshape(between)
    column = small.reshape(between, 1) if before == 1 else strided(small, (before, between, 1), (0, 1, 1))
    return large.reshape(before * between, after), column.reshape(before * between, 1)


def power(x: Tensor, exponent: float) -> Any:
    """Lower `aten.pow` with a whole or half number: ExecuTorch's exporter cannot convert the operation itself."""
    halves = int(2 * exponent)
    if halves != 2 * exponent or not 0 < abs(halves) <= 16:
        return NotImplemented
    base, times = (x, abs(halves) // 2) if halves % 2 == 0 else (torch.sqrt(x), abs(halves))
    found = base
    for _ in range(times - 1):
        found = found * base
    return found if halves > 0 else torch.reciprocal(found)


def step(x: Tensor) -> Tensor:
    """Return 1 where x is positive, and 0 elsewhere. Comparisons and `where` are many times slower."""
    found: Tensor = aten.hardtanh.default(x * LARGEST, 0.0, 1.0)
    return found


def threshold_backward(g: Tensor, x: Tensor, threshold: float) -> Tensor:
    """Lower the gradient of ReLU."""
    return g * step(x if threshold == 0 else x - threshold)


def hardtanh_backward(g: Tensor, x: Tensor, low: float, high: float) -> Tensor:
    """Lower the gradient of ReLU6 and hard tanh."""
    return g * step(x - low) * step(high - x)


def leaky_relu_backward(g: Tensor, x: Tensor, slope: float, _is_result: bool) -> Tensor:
    """Lower the gradient of a leaky ReLU."""
    return g * (step(x) * (1 - slope) + slope)
