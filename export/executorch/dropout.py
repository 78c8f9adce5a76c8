"""Dropout from a seed, with the integer operations that ExecuTorch has kernels for.

The rule is that of `export.ops.dropout`: a program drops the same entries for a seed as the ONNX graph. Numbers of 64
bits are signed here and wrap around, so a logical shift is an arithmetic one with the copies of the sign masked out.
"""

import math

import torch
from torch import Tensor

from export.ops.dropout import FIRST_MULTIPLIER, GAMMA, SECOND_MULTIPLIER

__all__ = ["dropped"]


def dropped(x: Tensor, p: float, seed: Tensor, number: int, *, whole: bool) -> Tensor:
    """Drop entries, or channels of samples if not `whole`, by the stream of dropout `number`, and scale the others."""
    shape = x.shape if whole else x.shape[:2]
    stream = _finalised(seed + _signed((number + 1) * GAMMA))
    places = torch.arange(1, math.prod(shape) + 1, dtype=torch.int64)
    bits = _finalised(places * _signed(GAMMA) + stream)
    top = _shifted(bits, 40).to(torch.float32)
    # The first number that is kept. All are whole numbers below 2^24, which float32 holds exactly.
    least = math.ceil(torch.tensor(p, dtype=torch.float32).item() * 2**24)
    kept = torch.clamp(top - (least - 1), 0.0, 1.0)
    factor = (kept * (1 / (1 - p) if p < 1 else 0.0)).reshape(shape)
    return x * (factor if whole else factor.reshape(*shape, *(1,) * (x.dim() - 2)))


def _finalised(z: Tensor) -> Tensor:
    z = _mixed(z, 30) * _signed(FIRST_MULTIPLIER)
    z = _mixed(z, 27) * _signed(SECOND_MULTIPLIER)
    return _mixed(z, 31)


def _mixed(z: Tensor, places: int) -> Tensor:
    return torch.bitwise_xor(z, _shifted(z, places))


def _shifted(z: Tensor, places: int) -> Tensor:
    return torch.bitwise_and(torch.bitwise_right_shift(z, places), 2 ** (64 - places) - 1)


def _signed(word: int) -> int:
    return (word + 2**63) % 2**64 - 2**63
