"""Lets PyTorch drop the same entries as an exported training graph, so that the two can be compared.

A training graph draws its dropout from `edgefl.noise` (see `export.ops.dropout` for the rule); PyTorch draws from its
own generator. Within `SharedDropoutNoise(seed)` the dropouts of one forward pass draw as the graph's do.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from edgefl.noise import derive, unit

__all__ = ["SharedDropoutNoise"]

_DROPOUT, _ATTENTION = functional.dropout, functional.scaled_dot_product_attention
_WHOLE: set[Callable[..., Any]] = {functional.dropout, torch.dropout, torch.dropout_}
_CHANNELS: set[Callable[..., Any]] = {
    *(functional.dropout1d, functional.dropout2d, functional.dropout3d),
    *(torch.feature_dropout, torch.feature_dropout_),
}


class SharedDropoutNoise(TorchFunctionMode):
    """Dropout number k of a forward pass draws from stream k of the seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed, self._number = seed, 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if func is functional.multi_head_attention_forward:
            return self._multi_head_attention(*args, **named)
        if func is functional.scaled_dot_product_attention:
            return self._attention(*args, **named)
        if func not in _WHOLE | _CHANNELS:
            return func(*args, **named)
        return self._dropout(func, *args, **named)

    def _multi_head_attention(self, *args: Any, **named: Any) -> Any:
        """Run torch's function, which drops values by itself: no mode is active inside another function of torch."""
        functional.dropout = partial(self._dropout, _DROPOUT)
        functional.scaled_dot_product_attention = self._attention
        try:
            return functional.multi_head_attention_forward(*args, **named)
        finally:
            functional.dropout, functional.scaled_dot_product_attention = _DROPOUT, _ATTENTION

    def _attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        *more: Any,
        **named: Any,
    ) -> Any:
        """Attention whose probabilities are the product with an identity, so that they can be dropped."""
        if not dropout_p:
            return _ATTENTION(query, key, value, attn_mask, 0.0, *more, **named)
        every = torch.eye(key.shape[-2]).expand(*key.shape[:-1], key.shape[-2])
        seen = _ATTENTION(query, key, every, attn_mask, 0.0, *more, **named)
        return self._dropout(_DROPOUT, seen, dropout_p) @ value

    def _dropout(self, func: Callable[..., Any], *args: Any, **named: Any) -> Any:
        # torch's own functions name their arguments input, p, train; those of torch.nn say training.
        given = dict(zip(("input", "p", "train"), args, strict=False)) | named
        x, p, train = given["input"], given.get("p", 0.5), given.get("training", given.get("train", True))
        if not train or p == 0:
            return x
        return x * self._factor(x, p, whole=func in _WHOLE)

    def _factor(self, x: Tensor, p: float, *, whole: bool) -> Tensor:
        shape = x.shape if whole else x.shape[:2] + (1,) * (x.ndim - 2)
        stream = derive(self._seed, self._number)
        self._number += 1
        kept = torch.from_numpy(unit(stream, 0, math.prod(shape)) >= p).reshape(shape)
        return kept.to(x.dtype) / (1 - p)
