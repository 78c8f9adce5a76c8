"""Scaled dot-product attention, built from products and a softmax with known gradients.

The width of a head may be cut, the same in every head; the number of heads is constant. As in PyTorch, scores are
divided by the square root of the width that the heads have when the graph runs, unless a scale is given.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from edgefl.errors import ExportError
from export.ops.activations import softmax
from export.ops.arithmetic import add, mul, where
from export.ops.dropout import dropout as drop
from export.ops.linear import matmul
from export.ops.reductions import count
from export.ops.shapes import transpose
from export.trace import Trace, Value

__all__ = ["OPERATIONS"]


def attention(
    t: Trace,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """softmax(q k^T / sqrt(d)) v. Dropout draws as any other, in the order of the forward pass."""
    if dropout and not t.training:
        raise ExportError(
            f"attention drops values with probability {dropout} when it predicts",
            fix="Pass dropout_p=0.0 to it unless self.training.",
        )
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        raise ExportError(
            f"{query.shape[-3]} query heads share {key.shape[-3]} key heads",
            fix="Repeat keys and values to as many heads as queries before the attention.",
        )
    scaled = mul(t, query, scale if scale is not None else _by_width(t, query))
    scores = matmul(t, scaled, transpose(t, key, -2, -1))
    if causal:
        rows, columns = scores.shape[-2:]
        hidden = np.triu(np.full((rows, columns), -np.inf, np.float32), 1)
        scores = add(t, scores, Value(t.emit.constant(hidden), scores.axes[-2:]))
    if mask is not None and mask.dtype == "bool":
        scores = where(t, mask, scores, float("-inf"))
    elif mask is not None:
        scores = add(t, scores, mask)
    return matmul(t, drop(t, softmax(t, scores, -1), dropout, train=True), value)


def _by_width(t: Trace, query: Value) -> Value:
    width = count(t, [query.axes[-1]])
    return Value(t.emit.one("Reciprocal", t.emit.one("Sqrt", width)), ())


OPERATIONS: dict[str, Callable[..., Any]] = {"aten.scaled_dot_product_attention.default": attention}
