"""Scaled dot-product attention as two products and a softmax: torch's own kernels have no counterpart in ExecuTorch."""

import math

import torch
from torch import Tensor

from export.executorch.dropout import dropped

__all__ = ["attention"]

HIDDEN = -1.0e9
"""The score of what must not be seen. Not minus infinity: the difference of two of them is undefined."""


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    seed: Tensor | None = None,
    number: int | None = None,
) -> Tensor:
    """softmax(q k^T / sqrt(d)) v; with a seed, this is dropout `number`. The tracer has refused shared keys."""
    del enable_gqa
    scaled = query * (scale if scale is not None else 1 / math.sqrt(query.shape[-1]))
    scores = scaled @ key.transpose(-2, -1)
    if is_causal:
        scores = scores + torch.full(scores.shape[-2:], HIDDEN).triu(1)
    if attn_mask is not None and attn_mask.dtype is torch.bool:
        scores = scores + torch.where(attn_mask, 0.0, HIDDEN)
    elif attn_mask is not None:
        scores = scores + (attn_mask if attn_mask.requires_grad else torch.clamp(attn_mask, min=HIDDEN))
    seen = torch.softmax(scores, -1)
    if seed is not None and number is not None:
        seen = dropped(seen, dropout_p, seed, number, whole=True)
    return seen @ value
