"""Codec `slice`: the kept channels of a tensor, with the axes they lie on. Structured submodels use it.

Entry: ["slice", shape of the whole tensor, axes]. `axes` has for every axis null if it is whole, or a number n: the
part "#n", U8, marks the kept indices of the axis, packed as in `bits`. Axes of many tensors keep the same channels,
so equal bitmaps are sent once. Part: the tensor's name, the kept entries.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.errors import WireFormatError
from edgefl.masks import Mask
from edgefl.wire.checks import Packed, check_finite, check_packed, checked_shape, claim, count_ones, frozen, refuse
from edgefl.wire.envelope import Array, Parts

__all__ = ["Slice", "axis_part"]


def axis_part(number: int) -> str:
    """Return the name of a part that marks kept indices."""
    return f"#{number}"


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """The kept entries of a tensor and where they lie in the whole one."""

    codec: ClassVar[str] = "slice"
    shape: tuple[int, ...]
    """The shape of the whole tensor."""
    axes: tuple[Packed | None, ...]
    """For every axis the packed marks of its kept indices; None where it is whole."""
    values: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", frozen(self.values))
        object.__setattr__(self, "axes", tuple(None if a is None else frozen(a) for a in self.axes))

    @classmethod
    def of(cls, mask: Mask, name: str, values: Array) -> "Slice":
        """Make the slice of a tensor that was gathered with a mask."""
        shape = mask.graph.tensor[name].shape
        axes = tuple(_marks(selector, size) for selector, size in zip(mask.selectors[name], shape, strict=True))
        if values.shape != mask.shapes[name]:
            raise WireFormatError(
                f"tensor {name!r} has shape {values.shape}, but its mask keeps {mask.shapes[name]}",
                fix="Give the tensor as it was gathered with this mask.",
            )
        return cls(shape, axes, values)

    def kept(self) -> tuple[npt.NDArray[np.int64], ...]:
        """Return the kept indices of every axis."""
        return tuple(
            np.arange(size) if axis is None else np.flatnonzero(np.unpackbits(axis, count=size, bitorder="little"))
            for axis, size in zip(self.axes, self.shape, strict=True)
        )

    def to_dense(self) -> Array:
        """Return the whole tensor, with zeros where nothing was kept.

        The shape is the sender's claim: decode with the shapes you expect before you ask for this.
        """
        dense = np.zeros(self.shape, self.values.dtype)
        dense[np.ix_(*self.kept())] = self.values
        return dense

    def pack(self, name: str, parts: Parts) -> list[Any]:
        """Add the tensor's parts, sharing equal axes with other tensors, and return its entry."""
        self._check(name)
        parts[name] = self.values
        return [self.codec, list(self.shape), [_shared(axis, parts) for axis in self.axes]]

    @classmethod
    def unpack(cls, name: str, entry: list[Any], parts: Parts) -> "Slice":
        """Read the tensor back from its entry and parts."""
        if len(entry) != 3 or not isinstance(entry[2], list):
            raise refuse(name, f"the entry {str(entry)[:80]} is not [codec, shape, axes]")
        values = claim(name, name, parts)
        axes = tuple(_axis(name, number, parts) for number in entry[2])
        slices = cls(checked_shape(name, entry[1]), axes, values)
        slices._check(name)
        return slices

    def _check(self, name: str) -> None:
        if not len(self.axes) == len(self.shape) == self.values.ndim:
            raise refuse(name, f"{len(self.axes)} axes and {self.values.ndim} of its values meet {self.shape}")
        for axis, size, kept in zip(self.axes, self.shape, self.values.shape, strict=True):
            if axis is not None:
                check_packed(name, axis, size)
            if kept != (size if axis is None else count_ones(axis)):
                raise refuse(name, f"an axis of {size} keeps another number than the {kept} it has values for")
        check_finite(name, self.values)


def _marks(selector: slice | npt.NDArray[np.int64], size: int) -> Packed | None:
    if isinstance(selector, slice) and selector == slice(None):
        return None
    flags = np.zeros(size, np.bool_)
    flags[selector] = True
    return np.packbits(flags, bitorder="little")


def _shared(axis: Packed | None, parts: Parts) -> int | None:
    """Return the number of the part that marks this axis, adding it if no tensor before had it."""
    if axis is None:
        return None
    number = 0
    while (part := parts.get(axis_part(number))) is not None:
        if np.array_equal(part, axis):
            return number
        number += 1
    parts[axis_part(number)] = axis
    return number


def _axis(name: str, number: Any, parts: Parts) -> Packed | None:
    if number is None:
        return None
    if type(number) is not int or axis_part(number) not in parts:
        raise refuse(name, f"there is no axis {str(number)[:40]}")
    part = parts[axis_part(number)]
    if part.dtype != np.uint8 or part.ndim != 1:
        raise refuse(name, f"its axis {number} is {part.dtype} with {part.ndim} axes")
    return part
