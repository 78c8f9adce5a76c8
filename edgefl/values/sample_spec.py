"""SampleSpec: what one sample of a federation is, so that a device can check its own data before it joins.

A bundle carries it (`sample.json`), a federation may say more, and the coordinator sends it to members. It comes to a
device from a stranger, so everything in it is bounded: the whole document stays below 256 KiB of JSON.
"""

import base64
import binascii
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from edgefl.values.dataclass_fields import check_fields
from edgefl.values.field_error import FieldError, shown
from edgefl.values.quantities import Count, PositiveCount, Ratio, Real
from edgefl.values.schema import document
from edgefl.values.strings import Name, Text

__all__ = [
    "MOST_EXAMPLE_BYTES",
    "MOST_NAME_BYTES",
    "SampleDtype",
    "SampleExample",
    "SampleKind",
    "SampleNormalisation",
    "SampleSpec",
    "RawDtype",
    "names_fit",
]

MOST_EXAMPLE_BYTES = 48 * 1024
"""Bytes of an example before and after normalisation, each; larger samples have no example."""
MOST_NAME_BYTES = 48 * 1024
"""UTF-8 bytes of all class names together, and three more for each."""
_MOST_AXES = 8
_MOST_NUMBERS = 2**28
"""Numbers of one sample: a gigabyte as float32."""
_MOST_CHANNELS = 256
_MOST_CLASSES = 65_536
_LARGEST_FLOAT32 = 3.4028234e38


class SampleDtype(StrEnum):
    """Type of `x`, as the graph takes it."""

    FLOAT32 = "float32"
    INT64 = "int64"


class RawDtype(StrEnum):
    """Type of a sample before normalisation."""

    BOOL = "bool"
    UINT8 = "uint8"
    INT8 = "int8"
    UINT16 = "uint16"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"

    @property
    def item_bytes(self) -> int:
        """Bytes of one number."""
        return {"bool": 1, "int8": 1, "uint8": 1}.get(self.value) or int(self.value.lstrip("uintfloa")) // 8


class SampleKind(StrEnum):
    """What a sample shows."""

    IMAGE = "image"
    VECTOR = "vector"
    TOKENS = "tokens"
    OTHER = "other"


Base64 = Annotated[
    str,
    Text(
        f"bytes in base64 (RFC 4648, with padding), at most {MOST_EXAMPLE_BYTES:,} of them",
        "'AAECAw=='",
        lambda text: _decoded(text) is not None,
    ),
]
"""Bytes of an example."""


def names_fit(names: Sequence[str]) -> bool:
    """Return whether class names are short enough, together, to be part of a description."""
    return sum(len(name.encode()) + 3 for name in names) <= MOST_NAME_BYTES


def _decoded(text: str) -> bytes | None:
    if len(text) > 4 * -(-MOST_EXAMPLE_BYTES // 3) or not text.isascii():
        return None
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleNormalisation:
    """How raw numbers become `x`: float32(raw) * float32(1 / (scale * std)) - float32(mean / std).

    The two factors are computed in double precision and rounded once.
    """

    mean: tuple[Real, ...]
    """One mean for everything, or one per channel (the first axis of a sample)."""

    std: tuple[Ratio, ...]
    """As many standard deviations."""

    scale: Ratio = 255.0
    """What raw numbers are divided by first."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not 1 <= len(self.mean) <= _MOST_CHANNELS or len(self.mean) != len(self.std):
            raise FieldError(
                f"has {len(self.mean)} means and {len(self.std)} standard deviations",
                fix=f"Give equally many: one, or one per channel, at most {_MOST_CHANNELS}",
            )
        if min(*self.std, self.scale) <= 0:
            raise FieldError("has a std or a scale of 0", fix="Use 1 for a channel that is constant")
        if not all(_is_usable(mean, std, self.scale) for mean, std in zip(self.mean, self.std, strict=True)):
            raise FieldError("has factors beyond float32", fix="Give a larger std and scale, or a smaller mean")


def _is_usable(mean: float, std: float, scale: float) -> bool:
    """Return whether the two factors are finite in float32."""
    divisor = scale * std
    return divisor > 0 and 1 / divisor <= _LARGEST_FLOAT32 and abs(mean / std) <= _LARGEST_FLOAT32


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleExample:
    """One sample, with which a client tests how it reads and normalises its own."""

    raw: Base64
    """The sample's bytes before normalisation: little-endian, row-major."""

    label: Count
    """Its class."""

    x: Base64
    """The bytes after normalisation, in the type of `x`: little-endian, row-major."""

    def __post_init__(self) -> None:
        check_fields(self)


@document("sample", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSpec:
    """What one sample is."""

    shape: tuple[PositiveCount, ...]
    """Sizes of one sample as the graph's `x` takes it, without the batch axis."""

    dtype: SampleDtype
    """Type of `x`."""

    kind: SampleKind = SampleKind.OTHER
    """What a sample shows."""

    layout: Name | None = None
    """Names of the axes, such as 'CHW', or None if they have none."""

    raw_dtype: RawDtype | None = None
    """Type of a sample before normalisation, or None if the federation does not know it."""

    normalisation: SampleNormalisation | None = field(default=None, metadata={"absent": "none"})
    """How raw numbers become `x`. None with a `raw_dtype`: the numbers are only converted."""

    classes: PositiveCount
    """Number of classes: labels are from 0 to this minus 1."""

    class_names: tuple[Name, ...] | None = None
    """One name per class, or None."""

    example: SampleExample | None = field(default=None, metadata={"absent": "none"})
    """One sample, or None."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not 1 <= len(self.shape) <= _MOST_AXES or math.prod(self.shape) > _MOST_NUMBERS:
            fix = f"Give 1 to {_MOST_AXES} sizes, of at most 2^28 numbers together"
            raise FieldError(f"is {list(self.shape[:9])}", fix=fix, path=("shape",))
        if self.classes > _MOST_CLASSES:
            raise FieldError(f"is {self.classes}", fix=f"Give at most {_MOST_CLASSES}", path=("classes",))
        self._check_names()
        self._check_normalisation()
        self._check_example()

    @property
    def numbers(self) -> int:
        """How many numbers a sample has."""
        return math.prod(self.shape)

    def _check_names(self) -> None:
        names = self.class_names
        if names is None:
            return
        if len(names) != self.classes or not names_fit(names):
            raise FieldError(
                f"has {len(names)} names for {self.classes} classes, of {sum(map(len, names)):,} characters",
                fix=f"Give one name per class, of at most {MOST_NAME_BYTES:,} bytes together, or null",
                path=("class_names",),
            )

    def _check_normalisation(self) -> None:
        how = self.normalisation
        if how is not None and len(how.mean) not in (1, self.shape[0]):
            raise FieldError(
                f"has {len(how.mean)} means, but samples have the shape {list(self.shape)}",
                fix="Give one mean and std, or one per channel, which is the first axis",
                path=("normalisation",),
            )
        if how is not None and self.dtype is not SampleDtype.FLOAT32:
            fix = "Give none: the numbers are tokens"
            raise FieldError(f"is given, but `x` has the type {self.dtype}", fix=fix, path=("normalisation",))

    def _check_example(self) -> None:
        one = self.example
        if one is None:
            return
        raw = None if self.raw_dtype is None else self.numbers * self.raw_dtype.item_bytes
        x = self.numbers * (4 if self.dtype is SampleDtype.FLOAT32 else 8)
        found = {"raw": len(_decoded(one.raw) or b""), "x": len(_decoded(one.x) or b"")}
        for name, size in {"raw": raw, "x": x}.items():
            if size is not None and found[name] != size:
                fix = f"A sample of the shape {list(self.shape)} has {size:,}"
                raise FieldError(f"has {found[name]:,} bytes", fix=fix, path=("example", name))
        if one.label >= self.classes:
            fix = f"Give a class from 0 to {self.classes - 1}"
            raise FieldError(f"is {shown(one.label)}", fix=fix, path=("example", "label"))
