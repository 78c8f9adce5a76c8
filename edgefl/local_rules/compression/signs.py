"""One bit an entry: the sign, drawn or as it is, and one scale a tensor.

Stochastic sign (FedMRN's "SignSGD"): Safaryan and Richtarik, "Stochastic Sign Descent Methods", ICML 2021, the
stochastic sign operator. Its expectation is the update itself:

    +s with probability 1/2 + u / (2 s), else -s,     with s of at least the largest |u|

They take the L2 norm for s. For an update of d entries that is noise sqrt(d) times as large as what it hides, so by
default s is the largest |u|, the smallest scale without a bias.

Scaled sign: Karimireddy et al., "Error Feedback Fixes SignSGD", ICML 2019: the mean of |u| times the sign. Biased.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

from edgefl.local_rules.compression.compressor import (
    FloatArray,
    bits_in,
    check_scales,
    checked,
    dense_in,
    expected_scales,
    part_name,
    scale_payload,
)
from edgefl.masks import Array
from edgefl.noise import derive, symmetric
from edgefl.wire import Bits, Expected, Payload

__all__ = ["ScaledSign", "SignScale", "StochasticSign"]


class SignScale(StrEnum):
    """What the scale of a stochastic sign is."""

    MAXIMUM = "maximum"
    L2 = "l2"


@dataclass(frozen=True, slots=True)
class StochasticSign:
    """A sign that is right more often the larger the entry is."""

    name: ClassVar[str] = "stochastic_sign"
    scale: SignScale = SignScale.MAXIMUM

    def compress(self, tensor: str, update: Array, seed: int) -> dict[str, Payload]:
        """Draw the signs."""
        flat = checked(tensor, update)
        scale = _largest(flat) if self.scale is SignScale.MAXIMUM else float(np.linalg.norm(flat))
        # A draw from [-1, 1) is below u / s with probability (1 + u / s) / 2.
        draws = symmetric(derive(seed, "signs", tensor), 0, flat.size, 1.0)
        flags = draws < (flat / np.float32(scale) if scale else flat)
        return {tensor: Bits.of(flags.reshape(update.shape)), part_name(tensor): scale_payload(scale)}

    def expected(self, tensor: str, shape: tuple[int, ...]) -> dict[str, Expected]:
        """Return the forms of the bits and their scale."""
        return _expected(tensor, shape)

    def check(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...]) -> None:
        """Refuse a scale below zero."""
        check_scales(tensor, payloads)

    def expand(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...], seed: int) -> FloatArray:
        """Return plus or minus the scale."""
        return _expanded(tensor, payloads, shape)


@dataclass(frozen=True, slots=True)
class ScaledSign:
    """The sign of every entry, and the mean of their magnitudes."""

    name: ClassVar[str] = "scaled_sign"

    def compress(self, tensor: str, update: Array, seed: int) -> dict[str, Payload]:
        """Take the signs."""
        flat = checked(tensor, update)
        scale = float(np.abs(flat).mean(dtype=np.float64)) if flat.size else 0.0
        return {tensor: Bits.of((flat >= 0).reshape(update.shape)), part_name(tensor): scale_payload(scale)}

    def expected(self, tensor: str, shape: tuple[int, ...]) -> dict[str, Expected]:
        """Return the forms of the bits and their scale."""
        return _expected(tensor, shape)

    def check(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...]) -> None:
        """Refuse a scale below zero."""
        check_scales(tensor, payloads)

    def expand(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...], seed: int) -> FloatArray:
        """Return plus or minus the scale."""
        return _expanded(tensor, payloads, shape)


def _expected(tensor: str, shape: tuple[int, ...]) -> dict[str, Expected]:
    return {tensor: Expected(shape, Bits.codec), **expected_scales(tensor)}


def _largest(flat: FloatArray) -> float:
    return float(np.abs(flat).max(initial=0))


def _expanded(tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...]) -> FloatArray:
    update = bits_in(payloads, tensor, math.prod(shape)).astype(np.float32).reshape(shape)
    update *= 2
    update -= 1
    update *= dense_in(payloads, part_name(tensor), 1)[0]
    return update
