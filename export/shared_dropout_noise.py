"""Lets PyTorch drop the same entries as an exported training graph, so that the two can be compared.

A training graph draws its dropout from `edgefl.noise` (see `export.ops.dropout` for the rule); PyTorch draws from its
own generator. Within `SharedDropoutNoise(seed)` the dropouts of one forward pass draw as the graph's do.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from edgefl.noise import derive, unit

__all__ = ["SharedDropoutNoise"]

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
        if func not in _WHOLE | _CHANNELS:
            return func(*args, **named)
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
