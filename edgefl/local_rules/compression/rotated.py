"""One bit per entry after a random rotation, and one scale per block: DRIVE and EDEN.

Vargaftik et al., "DRIVE: One-bit Distributed Mean Estimation", NeurIPS 2021, Algorithm 1, and "EDEN:
Communication-Efficient and Robust Distributed Mean Estimation", ICML 2022. With y = R u, u rotated, both send sign(y)
and a scale S, and the receiver takes S * (R transposed) sign(y). They differ in the scale. With q = sign(y):

    DRIVE   S = <y, q> / |q|^2 = |y|_1 / d            the least squared error, but a bias towards zero
    EDEN    S = |u|^2 / <y, q> = |y|_2^2 / |y|_1      no bias (EDEN with one bit; DRIVE's own unbiased form is the same)

R is the randomised Hadamard transform instead of a uniform rotation, which is the papers' own choice and makes "no
bias" nearly true instead of true. Rotation and scales are per block (see `hadamard.py`): one float32 for at most 8,192
bits.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgefl.local_rules.compression.compressor import (
    FloatArray,
    bits_in,
    check_scales,
    checked_update,
    dense_in,
    expected_scales,
    payload_name,
)
from edgefl.local_rules.compression.hadamard import blocks_of, rotate, rotate_back, rotated_size
from edgefl.masks import Array
from edgefl.noise import derive
from edgefl.wire import Bits, Dense, Expected, Payload

__all__ = ["Drive", "Eden"]


@dataclass(frozen=True, slots=True)
class _Rotated:
    """Signs of the rotated update, and a scale per block."""

    unbiased: ClassVar[bool]

    def compress(self, tensor: str, update: Array, seed: int) -> dict[str, Payload]:
        """Rotate, and take the signs."""
        turned = rotate(checked_update(tensor, update), derive(seed, "rotation", tensor))
        scales, begin = [], 0
        for count, width in blocks_of(update.size):
            rows = turned[begin : begin + count * width].reshape(count, width)
            sums = np.abs(rows).sum(axis=1, dtype=np.float64)
            if self.unbiased:
                squares = np.square(rows, dtype=np.float64).sum(axis=1)
                scales.append(np.divide(squares, sums, out=np.zeros(count), where=sums > 0))
            else:
                scales.append(sums / width)
            begin += count * width
        scale = np.concatenate(scales).astype(np.float32) if scales else np.zeros(0, np.float32)
        return {tensor: Bits.of(turned >= 0), payload_name(tensor): Dense(scale)}

    def expected(self, tensor: str, shape: tuple[int, ...]) -> dict[str, Expected]:
        """Return the forms of the bits and of a scale per block."""
        size = math.prod(shape)
        bits = Expected((rotated_size(size),), Bits.codec)
        return {tensor: bits, **expected_scales(tensor, sum(count for count, _ in blocks_of(size)))}

    def check(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...]) -> None:
        """Refuse scales below zero."""
        check_scales(tensor, payloads)

    def expand(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...], seed: int) -> FloatArray:
        """Rotate the scaled signs back."""
        size = math.prod(shape)
        blocks = blocks_of(size)
        scales = dense_in(payloads, payload_name(tensor), sum(count for count, _ in blocks))
        each = np.repeat(scales, [width for count, width in blocks for _ in range(count)])
        signs = np.where(bits_in(payloads, tensor, rotated_size(size)), each, -each)
        return rotate_back(signs, size, derive(seed, "rotation", tensor)).reshape(shape)


@dataclass(frozen=True, slots=True)
class Drive(_Rotated):
    """Signs of the rotated update, scaled for the least error."""

    name: ClassVar[str] = "drive"
    unbiased: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Eden(_Rotated):
    """Signs of the rotated update, scaled so that their expectation is the update."""

    name: ClassVar[str] = "eden"
    unbiased: ClassVar[bool] = True
