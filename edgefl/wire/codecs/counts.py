"""Codec `counts`: small whole numbers, such as how often FedMAP's masks drew each weight.

Entry: ["counts", shape, limit]. Every number is from 0 to `limit` and takes as many bits as `limit` has. Part: the
tensor's name, U8: the lowest bits of all entries packed as in `bits`, then the next higher bits, and so on. Bit planes,
because a plane is packed and unpacked in one numpy call and is a plain bit set in other languages.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.errors import WireFormatError
from edgefl.wire.body_parts import BodyParts, pieces
from edgefl.wire.codecs.checks import Packed, check_packed, checked_shape, claim, frozen, refuse

__all__ = ["Counts"]

MAX_LIMIT = 2**16 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """A tensor of numbers from 0 to a limit, packed until it is unpacked by `to_array`."""

    codec: ClassVar[str] = "counts"
    shape: tuple[int, ...]
    limit: int
    packed: Packed

    def __post_init__(self) -> None:
        object.__setattr__(self, "packed", frozen(self.packed))

    @classmethod
    def of(cls, numbers: npt.NDArray[np.integer], limit: int) -> "Counts":
        """Pack whole numbers from 0 to `limit`."""
        if not np.issubdtype(numbers.dtype, np.integer):
            raise WireFormatError(
                f"counts need whole numbers, got an array of {numbers.dtype}", fix="Pass whole numbers."
            )
        if not 1 <= limit <= MAX_LIMIT:
            raise WireFormatError(f"the limit of counts is {limit}", fix=f"It must be from 1 to {MAX_LIMIT}.")
        if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) <= limit:
            raise WireFormatError(
                f"counts range from {numbers.min()} to {numbers.max()}", fix=f"They must be from 0 to {limit}."
            )
        flat = numbers.reshape(-1)
        planes = [np.packbits((flat >> bit) & 1, bitorder="little") for bit in range(limit.bit_length())]
        return cls(numbers.shape, limit, np.concatenate(planes))

    def to_array(self) -> npt.NDArray[np.uint16]:
        """Unpack to an array of numbers."""
        numbers = np.zeros(math.prod(self.shape), np.uint16)
        for bit, plane in enumerate(self._planes()):
            flags = np.unpackbits(plane, count=numbers.size, bitorder="little")
            numbers |= flags.astype(np.uint16) << np.uint16(bit)
        return numbers.reshape(self.shape)

    def pack(self, name: str, parts: BodyParts) -> list[Any]:
        """Add the tensor's part and return its entry."""
        self._check(name)
        parts[name] = self.packed
        return [self.codec, list(self.shape), self.limit]

    @classmethod
    def unpack(cls, name: str, entry: list[Any], parts: BodyParts) -> "Counts":
        """Read the tensor back from its entry and part."""
        if len(entry) != 3 or type(entry[2]) is not int or not 1 <= entry[2] <= MAX_LIMIT:
            raise refuse(name, f"the entry {str(entry)[:80]} is not [codec, shape, limit up to {MAX_LIMIT}]")
        counts = cls(checked_shape(name, entry[1]), entry[2], claim(name, name, parts, np.uint8))
        counts._check(name)
        return counts

    def _planes(self) -> list[Packed]:
        return np.split(self.packed, self.limit.bit_length())

    def _check(self, name: str) -> None:
        bits, planes = math.prod(checked_shape(name, self.shape)), self.limit.bit_length()
        if self.packed.size != planes * -(-bits // 8):
            raise refuse(name, f"{self.packed.size} bytes do not hold {planes} planes of {bits} bits")
        for plane in self._planes():
            check_packed(name, plane, bits)
        if any(self._over_limit(group) for group in zip(*map(pieces, self._planes()), strict=True)):
            raise refuse(name, f"a count is above its limit {self.limit}")

    def _over_limit(self, planes: tuple[Packed, ...]) -> bool:
        """Compare numbers with the limit, from their highest bit down, eight at a time on packed bytes."""
        above = np.zeros_like(planes[0])
        equal = ~above
        for bit, plane in reversed(list(enumerate(planes))):
            if self.limit >> bit & 1:
                equal &= plane
            else:
                above |= equal & plane
                equal &= ~plane
        return bool(above.any())
