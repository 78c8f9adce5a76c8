"""The ATen operations that can be exported, each with its forward and backward form in ONNX.

An operation takes the trace and the arguments of its ATen schema, tensors as `Value`. It

    1. states which axes must agree (`export.axes.unify`), which is where channel groups come from;
    2. emits its forward nodes and returns its output as a `Value`;
    3. records the parameters that it used (`trace.layer`);
    4. registers its backward form (`trace.backward`), which adds gradients to its inputs.

arithmetic.py        elementwise functions with broadcasting, comparisons, choices
activations.py       elementwise activations and softmax
shapes.py            reshapes, transpositions, expansion, padding
concat_and_slice.py  concatenations, stacks, slices, splits
reductions.py        means, sums, extremes and variances over axes
linear.py            linear layers and matrix products
attention.py         scaled dot-product attention
convolution.py       convolutions in two dimensions
conv_window.py       the geometry of a convolution
patches.py           convolutions of small maps by patches
depthwise.py         depthwise convolutions as shifted products
pooling.py           max pooling
average_pooling.py   average pooling
pool_window.py       the geometry of a pool
batch_norm.py        batch norm and instance norm
norms.py             group norm and layer norm
per_channel.py       scale, shift and standardise channels in one kernel
recurrent.py         LSTM, GRU and plain recurrent layers as loops
recurrent_cells.py   one step of a recurrent cell, forward and back
embedding.py         embeddings
dropout.py           dropout from a seed
"""

from collections.abc import Callable, Mapping
from typing import Any

from export.ops import (
    activations,
    arithmetic,
    attention,
    average_pooling,
    batch_norm,
    concat_and_slice,
    convolution,
    dropout,
    embedding,
    linear,
    norms,
    pooling,
    recurrent,
    reductions,
    shapes,
)

__all__ = ["OPERATIONS", "Operation"]

Operation = Callable[..., Any]

OPERATIONS: Mapping[str, Operation] = {
    **activations.OPERATIONS,
    **arithmetic.OPERATIONS,
    **average_pooling.OPERATIONS,
    **attention.OPERATIONS,
    **batch_norm.OPERATIONS,
    **convolution.OPERATIONS,
    **dropout.OPERATIONS,
    **embedding.OPERATIONS,
    **linear.OPERATIONS,
    **norms.OPERATIONS,
    **concat_and_slice.OPERATIONS,
    **pooling.OPERATIONS,
    **recurrent.OPERATIONS,
    **reductions.OPERATIONS,
    **shapes.OPERATIONS,
}
