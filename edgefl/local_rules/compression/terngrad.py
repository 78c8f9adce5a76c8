"""Three levels per entry: minus the scale, zero, plus the scale.

Wen et al., "TernGrad: Ternary Gradients to Reduce Communication in Distributed Deep Learning", NIPS 2017:

    s = the largest |u| of the tensor                                           Eq. 2, layer by layer
    s * sign(u) with probability |u| / s, else 0                                Eq. 1 and 3

Its expectation is the update. Before that, entries beyond `clip` standard deviations are clipped to that ("gradient
clipping", 2.5 in the paper), which makes s smaller at the price of a bias; 0 leaves it out. On the wire five entries
share a byte, because 3^5 = 243: 1.6 bits per entry, where log2(3) = 1.585 is the minimum.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.errors import WireFormatError
from edgefl.local_rules.compression.compressor import (
    FloatArray,
    check_scales,
    checked_update,
    dense_in,
    expected_scales,
    payload_name,
    scale_payload,
)
from edgefl.masks import Array
from edgefl.noise import derive, unit
from edgefl.wire import Dense, Expected, Payload

__all__ = ["TernGrad"]

_POWERS = np.array([1, 3, 9, 27, 81], np.uint8)


@dataclass(frozen=True, slots=True)
class TernGrad:
    """A sign or zero: the larger the entry, the more often a sign."""

    name: ClassVar[str] = "terngrad"
    clip: float = 2.5
    """The number of standard deviations to clip at; 0 does not clip."""

    def compress(self, tensor: str, update: Array, seed: int) -> dict[str, Payload]:
        """Draw the levels."""
        flat = checked_update(tensor, update)
        if self.clip and flat.size:
            limit = np.float32(self.clip * float(flat.std(dtype=np.float64)))
            flat = np.clip(flat, -limit, limit)
        size = np.abs(flat)
        scale = size.max(initial=np.float32(0))
        drawn = unit(derive(seed, "levels", tensor), 0, flat.size) * scale < size
        levels = np.where(drawn, np.where(flat < 0, 0, 2), 1).astype(np.uint8)
        return {tensor: Dense(_packed(levels)), payload_name(tensor): scale_payload(float(scale))}

    def expected(self, tensor: str, shape: tuple[int, ...]) -> dict[str, Expected]:
        """Return the forms of the packed levels and their scale."""
        packed = Expected((-(-math.prod(shape) // 5),), Dense.codec, "uint8")
        return {tensor: packed, **expected_scales(tensor)}

    def check(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...]) -> None:
        """Refuse a scale below zero, and bytes that are not five levels."""
        check_scales(tensor, payloads)
        _levels_in(tensor, payloads, math.prod(shape))

    def expand(self, tensor: str, payloads: Mapping[str, Payload], shape: tuple[int, ...], seed: int) -> FloatArray:
        """Return the levels times the scale."""
        count = math.prod(shape)
        packed = _levels_in(tensor, payloads, count)
        scale = dense_in(payloads, payload_name(tensor), 1)[0]
        levels = (packed[:, None] // _POWERS % 3).reshape(-1)[:count]
        update = levels.astype(np.float32).reshape(shape)
        update -= 1
        update *= scale
        return update


def _levels_in(tensor: str, payloads: Mapping[str, Payload], count: int) -> Array:
    """Return the bytes that hold this many levels."""
    packed = dense_in(payloads, tensor, -(-count // 5), np.uint8)
    if packed.size and int(packed.max()) >= 243:
        raise WireFormatError(f"tensor {tensor!r} holds a byte above 242", fix="Five levels make at most 242.")
    return packed


def _packed(levels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    fives = np.ones(-(-levels.size // 5) * 5, np.uint8)
    fives[: levels.size] = levels
    return np.asarray((fives.reshape(-1, 5) * _POWERS).sum(axis=1), np.uint8)
