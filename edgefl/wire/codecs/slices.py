"""Codec `slice`: the kept channels of a tensor and their axes, used for structured submodels.

Entry: ["slice", shape of the whole tensor, axes]. `axes` has for every axis null if it is whole, or a number n: the
part "#n", U8, marks the kept indices of the axis, packed as in `bits`. Many tensors keep the same channels, so equal
bitmaps are sent once. Part: the tensor's name, the kept entries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.errors import WireFormatError
from edgefl.masks import Mask
from edgefl.wire.body_parts import Array, BodyParts, axis_part
from edgefl.wire.codecs.checks import Packed, check_finite, check_packed, checked_shape, claim, frozen, refuse

__all__ = ["Slice"]


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """The kept entries of a tensor and their positions in the whole tensor."""

    codec: ClassVar[str] = "slice"
    shape: tuple[int, ...]
    """The shape of the whole tensor."""
    axes: tuple[Packed | None, ...]
    """For every axis the packed flags of its kept indices; None if it is whole."""
    values: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(self.values))
        object.__setattr__(self, "axes", tuple(None if a is None else frozen(a) for a in self.axes))

    @classmethod
    def of(cls, mask: Mask, name: str, values: Array) -> "Slice":
        """Make the slice of a tensor that was gathered with a mask."""
        if values.shape != mask.shapes[name]:
            raise WireFormatError(
                f"tensor {name!r} has shape {values.shape}, but its mask keeps {mask.shapes[name]}",
                fix="Pass the tensor as gathered with this mask.",
            )
        return cls(mask.graph.tensor[name].shape, _axes_of(mask, name), values)

    def check_mask(self, mask: Mask, name: str) -> None:
        """Raise unless this slice was cut by the given mask."""
        same = all(_same(one, two) for one, two in zip(self.axes, _axes_of(mask, name), strict=False))
        if self.shape != mask.graph.tensor[name].shape or not same:
            raise WireFormatError(
                f"tensor {name!r} was cut by another mask", fix="Send the submodel that the plan names."
            )

    def kept(self) -> tuple[npt.NDArray[np.int64], ...]:
        """Return the kept indices of every axis."""
        return tuple(
            np.arange(size) if axis is None else np.flatnonzero(np.unpackbits(axis, count=size, bitorder="little"))
            for axis, size in zip(self.axes, self.shape, strict=True)
        )

    def to_dense(self) -> Array:
        """Return the whole tensor, with zeros where nothing was kept.

        The shape is the sender's claim: decode with expected shapes before calling this.
        """
        dense = np.zeros(self.shape, self.values.dtype)
        dense[np.ix_(*self.kept())] = self.values
        return dense

    def pack(self, name: str, parts: BodyParts) -> list[Any]:
        """Add the tensor's parts, sharing equal axes with other tensors, and return its entry."""
        numbers = [None if axis is None else parts.share_axis(axis) for axis in self.axes]
        self._check(name, [None if number is None else parts.ones(number) for number in numbers])
        parts[name] = self.values
        return [self.codec, list(self.shape), numbers]

    @classmethod
    def unpack(cls, name: str, entry: list[Any], parts: BodyParts) -> "Slice":
        """Read the tensor back from its entry and parts."""
        if len(entry) != 3 or not isinstance(entry[2], list):
            raise refuse(name, f"the entry {str(entry)[:80]} is not [codec, shape, axes]")
        values = claim(name, name, parts)
        axes = tuple(_axis(name, number, parts) for number in entry[2])
        slices = cls(checked_shape(name, entry[1]), axes, values)
        slices._check(name, [None if number is None else parts.ones(number) for number in entry[2]])
        return slices

    def _check(self, name: str, marked: Sequence[int | None]) -> None:
        """Check against the number of marked indices per axis, which is counted once for all tensors that share it."""
        checked_shape(name, self.shape)
        if not len(self.axes) == len(self.shape) == self.values.ndim:
            raise refuse(
                name,
                f"it has {len(self.axes)} axes, and values with {self.values.ndim} axes, for the shape {self.shape}",
            )
        for axis, ones, size, kept in zip(self.axes, marked, self.shape, self.values.shape, strict=True):
            if axis is not None:
                check_packed(name, axis, size)
            if kept != (size if ones is None else ones):
                raise refuse(name, f"an axis of size {size} has values for {kept} indices, but keeps another number")
        check_finite(name, self.values)


def _axes_of(mask: Mask, name: str) -> tuple[Packed | None, ...]:
    sizes = zip(mask.selectors[name], mask.graph.tensor[name].shape, strict=True)
    return tuple(_marks(selector, size) for selector, size in sizes)


def _same(one: Packed | None, other: Packed | None) -> bool:
    return one is other if one is None or other is None else np.array_equal(one, other)


def _marks(selector: slice | npt.NDArray[np.int64], size: int) -> Packed | None:
    if isinstance(selector, slice) and selector == slice(None):
        return None
    flags = np.zeros(size, np.bool_)
    flags[selector] = True
    return np.packbits(flags, bitorder="little")


def _axis(name: str, number: Any, parts: BodyParts) -> Packed | None:
    if number is None:
        return None
    if type(number) is not int or number < 0 or axis_part(number) not in parts:
        raise refuse(name, f"its axis {str(number)[:40]} is missing")
    part = parts[axis_part(number)]
    if part.dtype != np.uint8 or part.ndim != 1:
        raise refuse(name, f"its axis {number} is {part.dtype} with {part.ndim} axes")
    return part
