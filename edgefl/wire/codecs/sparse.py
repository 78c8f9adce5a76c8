"""Codec `sparse`: single entries and their positions, used for unstructured masks and Top-k updates.

Entry: ["bitmap", shape] or ["deltas", shape], the form of the positions (see `sparse_indices.py`). Parts: the
tensor's name, the values in ascending order of position; the name with "#at" after it, U8, the positions.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.errors import WireFormatError
from edgefl.wire.body_parts import Array, BodyParts
from edgefl.wire.codecs.checks import Packed, check_finite, checked_shape, claim, frozen, refuse
from edgefl.wire.codecs.sparse_indices import check_positions, encode_positions, indices_of

__all__ = ["Sparse"]


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """Some entries of a tensor; the others are unspecified. Positions stay packed until they are needed."""

    codec: ClassVar[str] = "sparse"
    shape: tuple[int, ...]
    values: Array
    form: str
    packed: Packed

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(self.values))
        object.__setattr__(self, "packed", frozen(self.packed))

    @classmethod
    def where(cls, array: Array, held: npt.NDArray[np.bool_] | None = None) -> "Sparse":
        """Make a sparse tensor of the held entries of an array; by default those that are not zero."""
        flags = (array != 0) if held is None else held
        if flags.shape != array.shape or flags.dtype != np.bool_:
            raise WireFormatError(
                f"the held entries of a tensor of shape {array.shape} are {flags.dtype} of shape {flags.shape}",
                fix="Pass booleans of the tensor's shape.",
            )
        return cls.at(array.shape, np.flatnonzero(flags), array[flags])

    @classmethod
    def at(cls, shape: tuple[int, ...], indices: npt.NDArray[np.int64], values: Array) -> "Sparse":
        """Make a sparse tensor of values at ascending, distinct flat indices."""
        size = math.prod(shape)
        if indices.shape != values.shape or indices.ndim != 1:
            raise WireFormatError(
                f"indices have shape {indices.shape}, but values have shape {values.shape}",
                fix="Pass one flat index per value.",
            )
        indices = indices.astype(np.int64)  # differences of unsigned numbers would wrap around
        if indices.size and (indices[0] < 0 or indices[-1] >= size or np.any(np.diff(indices) <= 0)):
            raise WireFormatError(
                f"the indices of a sparse tensor of {size} entries are not ascending or out of range",
                fix="Sort them, and give each index once.",
            )
        form, packed = encode_positions(indices, size)
        return cls(shape, values, form, packed)

    def indices(self) -> npt.NDArray[np.int64]:
        """Return the flat indices of the values."""
        return indices_of(self.form, self.packed, math.prod(self.shape))

    def to_dense(self) -> Array:
        """Return the whole tensor, with zeros for unspecified entries.

        The shape is the sender's claim: decode with expected shapes before calling this.
        """
        dense = np.zeros(math.prod(self.shape), self.values.dtype)
        dense[self.indices()] = self.values
        return dense.reshape(self.shape)

    def pack(self, name: str, parts: BodyParts) -> list[Any]:
        """Add the tensor's parts and return its entry."""
        self._check(name)
        parts[name] = self.values
        parts[f"{name}#at"] = self.packed
        return [self.form, list(self.shape)]

    @classmethod
    def unpack(cls, name: str, entry: list[Any], parts: BodyParts) -> "Sparse":
        """Read the tensor back from its entry and parts."""
        if len(entry) != 2:
            raise refuse(name, f"the entry {str(entry)[:80]} is not [form, shape]")
        values, packed = claim(name, name, parts), claim(name, f"{name}#at", parts, np.uint8)
        sparse = cls(checked_shape(name, entry[1]), values, entry[0], packed)
        sparse._check(name)
        return sparse

    def _check(self, name: str) -> None:
        if self.values.ndim != 1:
            raise refuse(name, f"its values have {self.values.ndim} axes")
        size = math.prod(checked_shape(name, self.shape))
        check_finite(name, self.values)
        check_positions(name, self.form, self.packed, size, self.values.size)
