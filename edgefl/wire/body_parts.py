"""The named parts of an envelope, and the axes that slices share."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "BodyParts", "axis_part", "count_ones", "pieces"]

Array = npt.NDArray[Any]


def axis_part(number: int) -> str:
    """Return the name of the part that marks the kept indices of a shared axis."""
    return f"#{number}"


def pieces(array: Array) -> Iterator[Array]:
    """Yield consecutive small pieces of a flat array, so that checks take little memory."""
    step = min(max(array.size // 16, 512), 1 << 16)
    return (array[begin : begin + step] for begin in range(0, array.size, step))


def count_ones(packed: npt.NDArray[np.uint8]) -> int:
    """Return the number of set bits."""
    return sum(int(np.bitwise_count(piece).sum()) for piece in pieces(packed))


class BodyParts(dict[str, Array]):
    """Parts by name. Readers remove the parts they use; the remaining ones are dense tensors."""

    def __init__(self, parts: dict[str, Array] | None = None) -> None:
        super().__init__(parts or {})
        self._numbers: dict[bytes, int] = {}
        self._ones: dict[int, int] = {}

    def share_axis(self, packed: npt.NDArray[np.uint8]) -> int:
        """Return the number of a shared axis, adding it if it is new."""
        number = self._numbers.setdefault(packed.tobytes(), len(self._numbers))
        self.setdefault(axis_part(number), packed)
        return number

    def ones(self, number: int) -> int:
        """Return the number of marked indices of a shared axis, counted once for all tensors."""
        if number not in self._ones:
            self._ones[number] = count_ones(self[axis_part(number)])
        return self._ones[number]
