"""Codec `dense`: a tensor unchanged. Any safetensors reader can read it."""

from dataclasses import dataclass
from typing import ClassVar

from edgefl.wire.body_parts import Array, BodyParts
from edgefl.wire.codecs.checks import check_finite, checked_shape, frozen

__all__ = ["Dense"]


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """A whole tensor, or a whole tensor of a submodel whose mask the receiver knows."""

    codec: ClassVar[str] = "dense"
    array: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "array", frozen(self.array))

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's shape."""
        return self.array.shape

    def pack(self, name: str, parts: BodyParts) -> None:
        """Add the tensor's part. It needs no entry: the header has its shape."""
        checked_shape(name, self.shape)
        check_finite(name, self.array)
        parts[name] = self.array

    @classmethod
    def unpack(cls, name: str, array: Array) -> "Dense":
        """Read the tensor back from its part."""
        checked_shape(name, array.shape)
        check_finite(name, array)
        return cls(array)
