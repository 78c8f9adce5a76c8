"""The table of lowerings: what each operation of a training step becomes on its way to ExecuTorch.

Kernels that are optimised in ExecuTorch 1.4 (mm, bmm, and elementwise operations on equal shapes) do the work; the
naive ones (convolution, linear, addmm, pooling, reductions, comparisons, where) are not used. Operations that are not
in this table take torch's own decomposition into core operations.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
from torch._decomp import core_aten_decompositions

from export.executorch import arithmetic, convolution, norms, pooling

__all__ = ["FORMS", "decompositions"]

aten = torch.ops.aten

FORMS: Mapping[Any, Callable[..., Any]] = {
    # convolutions: patches and matrix products
    aten.convolution.default: convolution.convolution,
    aten.convolution_backward.default: convolution.convolution_backward,
    # linear layers: only the smaller operand is transposed
    aten.mm.default: arithmetic.matrix_product,
    aten.addmm.default: arithmetic.add_product,
    # pooling: comparisons and sums of shifted images
    aten.max_pool2d_with_indices.default: pooling.max_pool,
    aten.max_pool2d_with_indices_backward.default: pooling.max_pool_backward,
    aten.avg_pool2d.default: pooling.average_pool,
    aten.avg_pool2d_backward.default: pooling.average_pool_backward,
    aten._adaptive_avg_pool2d.default: pooling.adaptive_average_pool,
    aten._adaptive_avg_pool2d_backward.default: pooling.adaptive_average_pool_backward,
    # normalisation: sums along rows, products with columns
    aten.native_batch_norm.default: norms.batch_norm,
    aten.native_batch_norm_backward.default: norms.batch_norm_backward,
    aten.native_group_norm.default: norms.group_norm,
    aten.native_group_norm_backward.default: norms.group_norm_backward,
    # reductions: products with ones
    aten.sum.default: arithmetic.total,
    aten.sum.dim_IntList: arithmetic.total,
    aten.mean.default: arithmetic.mean,
    aten.mean.dim: arithmetic.mean,
    # broadcasting: a matrix with a column or a row
    aten.add.Tensor: arithmetic.broadcast(aten.add.Tensor),
    aten.sub.Tensor: arithmetic.broadcast(aten.sub.Tensor),
    aten.mul.Tensor: arithmetic.broadcast(aten.mul.Tensor),
    aten.div.Tensor: arithmetic.broadcast(aten.div.Tensor),
    aten.pow.Tensor_Scalar: arithmetic.power,
    # slopes of activations: products with 0 and 1 instead of a choice
    aten.threshold_backward.default: arithmetic.threshold_backward,
    aten.hardtanh_backward.default: arithmetic.hardtanh_backward,
    aten.leaky_relu_backward.default: arithmetic.leaky_relu_backward,
}
"""Operation -> its lowering."""


@cache
def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """Return torch's core decompositions, with ours in place of some."""
    return {**core_aten_decompositions(), **FORMS}
