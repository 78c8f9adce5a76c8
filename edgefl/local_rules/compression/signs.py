"""One bit per entry, a random or the true sign, and one scale per tensor.

Stochastic sign (FedMRN's "SignSGD"): Safaryan and Richtarik, "Stochastic Sign Descent Methods", ICML 2021, the
stochastic sign operator. Its expectation is the update itself:

    +s with probability 1/2 + u / (2 s), else -s,     with s of at least the largest |u|

They take the L2 norm for s. For an update of d entries that is noise sqrt(d) times as large as the signal, so by
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
    checked_update,
    dense_in,
    expected_scales,
    payload_name,
    scale_payload,
)
from edgefl.masks import Array
from edgefl.noise import derive, symmetric
from edgefl.wire import Bits, Expected, Payload

__all__ = ["ScaledSign", "SignScale", "StochasticSign"]


class SignScale(StrEnum):
    """The scale of a stochastic sign."""

    MAXIMUM = "maximum"
    L2 = "l2"


@dataclass(frozen=True, slots=True)
class _Signs:
    """One bit per entry, and one scale."""

    def expected(self, tensor: str, shape: tuple[int, ...]) -> dict[str, Expected]:
        """Return the forms of the bits and their scale."""
        return {tensor: Expected(shape, Bits.codec), **expected_scales(tensor)}

    def check(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...]) -> None:
        """Refuse a scale below zero."""
        check_scales(tensor, payloads)

    def expand(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...], seed: int) -> FloatArray:
        """Return plus or minus the scale."""
        update = bits_in(payloads, tensor, math.prod(shape)).astype(np.float32).reshape(shape)
        update *= 2
        update -= 1
        update *= dense_in(payloads, payload_name(tensor), 1)[0]
        return update


@dataclass(frozen=True, slots=True)
class StochasticSign(_Signs):
    """A random sign: the larger the entry, the more often it is the right one."""

    name: ClassVar[str] = "stochastic_sign"
    scale: SignScale = SignScale.MAXIMUM

    def compress(self, tensor: str, update: Array, seed: int) -> dict[str, Payload]:
        """Draw the signs."""
        flat = checked_update(tensor, update)
        scale = float(np.abs(flat).max(initial=0) if self.scale is SignScale.MAXIMUM else np.linalg.norm(flat))
        # A draw from [-1, 1) is below u / s with probability (1 + u / s) / 2.
        draws = symmetric(derive(seed, "signs", tensor), 0, flat.size, 1.0)
        flags = draws < (flat / np.float32(scale) if scale else flat)
        return {tensor: Bits.of(flags.reshape(update.shape)), payload_name(tensor): scale_payload(scale)}


@dataclass(frozen=True, slots=True)
class ScaledSign(_Signs):
    """The sign of every entry, and the mean of their magnitudes."""

    name: ClassVar[str] = "scaled_sign"

    def compress(self, tensor: str, update: Array, seed: int) -> dict[str, Payload]:
        """Take the signs."""
        flat = checked_update(tensor, update)
        scale = float(np.abs(flat).mean(dtype=np.float64)) if flat.size else 0.0
        return {tensor: Bits.of((flat >= 0).reshape(update.shape)), payload_name(tensor): scale_payload(scale)}
