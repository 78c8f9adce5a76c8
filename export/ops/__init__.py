"""What EdgeFL can export: every ATen operation with its forward and backward form in ONNX.

One family a file. An operation takes the trace and the arguments of its ATen schema, tensors as `Value`. It

    1. says which axes must agree (`export.axes.unify`): that is where channel groups come from;
    2. emits its forward nodes and returns its output as a `Value`;
    3. notes the parameters it used (`trace.layer`);
    4. leaves its backward form behind (`trace.backward`), which adds gradients to its inputs.
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
