"""Drops unknown fields from JSON data before it is read.

A coordinator may be newer than a device, and fields may be added to a document without a new version of its schema.
So a device ignores what it does not know. A coordinator does not: an unknown field of a device's message is most likely
a mistake of the client's author.
"""

from collections.abc import Mapping

from edgefl.values.containers import ListType, MapType, OptionalType
from edgefl.values.dataclass_fields import Record, fields_of
from edgefl.values.field_types import FieldType

__all__ = ["known_fields"]


def known_fields(shape: FieldType, data: object) -> object:
    """Return data without the fields that its type does not have, at every level. Nothing else is checked."""
    match shape:
        case OptionalType(inner):
            return known_fields(inner, data)
        case Record(cls) if isinstance(data, Mapping):
            fields = fields_of(cls)
            return {name: known_fields(fields[name].shape, item) for name, item in data.items() if name in fields}
        case ListType(inner) if isinstance(data, list):
            return [known_fields(inner, item) for item in data]
        case MapType(inner) if isinstance(data, Mapping):
            return {name: known_fields(inner, item) for name, item in data.items()}
        case _:
            return data
