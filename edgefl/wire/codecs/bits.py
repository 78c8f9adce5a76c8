"""Codec `bits`: one bit per entry, used for FedMRN's masks.

Entry: ["bits", shape]. Part: the tensor's name, U8. Entry i of the tensor (last axis fastest) is bit i % 8 of byte
i // 8; the bits after the last entry are zero.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.errors import WireFormatError
from edgefl.wire.body_parts import BodyParts, count_ones
from edgefl.wire.codecs.checks import Packed, check_packed, checked_shape, claim, frozen, refuse

__all__ = ["Bits"]


@dataclass(frozen=True, slots=True, eq=False)
class Bits:
    """A tensor of booleans, packed until it is unpacked by `to_bool`."""

    codec: ClassVar[str] = "bits"
    shape: tuple[int, ...]
    packed: Packed

    def __post_init__(self) -> None:
        object.__setattr__(self, "packed", frozen(self.packed))

    @classmethod
    def of(cls, flags: npt.NDArray[np.bool_]) -> "Bits":
        """Pack an array of booleans."""
        if flags.dtype != np.bool_:
            raise WireFormatError(f"bits need booleans, got an array of {flags.dtype}", fix="Pass booleans.")
        return cls(flags.shape, np.packbits(flags, bitorder="little"))

    def to_bool(self) -> npt.NDArray[np.bool_]:
        """Unpack to an array of booleans."""
        count = math.prod(self.shape)
        flags = np.unpackbits(self.packed, count=count, bitorder="little")
        return flags.view(np.bool_).reshape(self.shape)

    def ones(self) -> int:
        """Return the number of True entries."""
        return count_ones(self.packed)

    def pack(self, name: str, parts: BodyParts) -> list[Any]:
        """Add the tensor's part and return its entry."""
        check_packed(name, self.packed, math.prod(checked_shape(name, self.shape)))
        parts[name] = self.packed
        return [self.codec, list(self.shape)]

    @classmethod
    def unpack(cls, name: str, entry: list[Any], parts: BodyParts) -> "Bits":
        """Read the tensor back from its entry and part."""
        if len(entry) != 2:
            raise refuse(name, f"the entry {str(entry)[:80]} is not [codec, shape]")
        shape = checked_shape(name, entry[1])
        packed = claim(name, name, parts, np.uint8)
        check_packed(name, packed, math.prod(shape))
        return cls(shape, packed)
