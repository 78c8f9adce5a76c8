"""Human-readable description of a value: lines of label and text, which `edgefl inspect` prints.

It works for every document, also those of other packages, because it follows the same type hints as the JSON form.
"""

from collections.abc import Mapping
from typing import Any

from edgefl.values.containers import ListType, MapType, OptionalType
from edgefl.values.dataclass_fields import Record, fields_of
from edgefl.values.field_types import FieldType, Flag
from edgefl.values.formatting import format_quantity
from edgefl.values.quantities import Quantity
from edgefl.values.unknown_fields import split_unit

__all__ = ["describe"]


def describe(value: object) -> list[tuple[str, str]]:
    """Return the value's fields in order, as pairs such as ('latency p50 step', '12.3 ms')."""
    return _record_lines(value, "")


def _record_lines(value: object, prefix: str) -> list[tuple[str, str]]:
    lines = []
    for name, field in fields_of(type(value)).items():
        label = f"{prefix} {field.label or _label(name, field.shape)}".strip()
        lines += _lines(label, getattr(value, name), field.shape, field.absent)
    return lines


def _lines(label: str, value: Any, shape: FieldType, absent: str) -> list[tuple[str, str]]:
    if isinstance(shape, OptionalType):
        return [(label, absent)] if value is None else _lines(label, value, shape.inner, absent)
    if isinstance(shape, Record):
        return _record_lines(value, label)
    if isinstance(shape, MapType):
        return _each_line(label, value, shape.item, absent)
    if isinstance(shape, ListType) and isinstance(shape.item, Record):
        numbered = {str(number): item for number, item in enumerate(value, start=1)}
        return _each_line(label, numbered, shape.item, absent)
    if isinstance(shape, ListType):
        texts = [text for item in value for _, text in _lines("", item, shape.item, absent)]
        return [(label, ", ".join(texts) or "none")]
    return [(label, _text(value, shape))]


def _each_line(label: str, items: Mapping[str, Any], shape: FieldType, absent: str) -> list[tuple[str, str]]:
    if not items:
        return [(label, "none")]
    return [line for key, item in items.items() for line in _lines(f"{label} {key}", item, shape, absent)]


def _text(value: Any, shape: FieldType) -> str:
    if isinstance(shape, Flag):
        return "yes" if value else "no"
    if isinstance(shape, Quantity):
        return format_quantity(value, shape)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _label(name: str, shape: FieldType) -> str:
    """Return the field's name with spaces, without a unit that the text already has."""
    inner = shape.inner if isinstance(shape, OptionalType) else shape
    stem, unit = split_unit(name)
    named_by_text = isinstance(inner, Quantity) and unit is not None and unit.dimension is inner.dimension
    return (stem if stem and named_by_text else name).replace("_", " ")
