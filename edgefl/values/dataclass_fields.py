"""Dataclasses as field types: JSON form and checks derived from their fields and type hints.

The `__post_init__` of every value calls `check_fields`, so JSON and Python values pass the same checks, and an invalid
value cannot exist. Supported hints: `bool`, `int`, `float`, `str`, a
`StrEnum`, another dataclass, `X | None`, a union of plain scalars, `tuple[X, ...]`, `Mapping[str, X]`, and
`Annotated[X, field_type]`.
"""

import dataclasses
import functools
import itertools
import types
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from edgefl.values.containers import ListType, MapType, OptionalType
from edgefl.values.field_error import FieldError, shown
from edgefl.values.field_types import Choice, FieldType, Flag, Scalar
from edgefl.values.quantities import REAL, WHOLE
from edgefl.values.strings import ANY_TEXT
from edgefl.values.unknown_fields import unknown_field

__all__ = ["Field", "Record", "fields_of", "field_type_of", "check_fields", "check_order"]

_PLAIN: dict[object, FieldType] = {bool: Flag(), int: WHOLE, float: REAL, str: ANY_TEXT}


_ALWAYS_WRITTEN = object()


@dataclasses.dataclass(frozen=True, slots=True)
class Field:
    """One field of a dataclass."""

    name: str
    shape: FieldType
    required: bool
    absent: str
    """Text shown if the field is None: the field's metadata 'absent', or 'not known'."""

    label: str | None
    """Text shown for the field's name: its metadata 'label', or None to derive it from the name."""

    unwritten: object = _ALWAYS_WRITTEN
    """Value that is left out of the JSON form. A field that was added to a published document has the metadata
    'added': without it, its text stays as readers from before know it."""

    @property
    def is_added(self) -> bool:
        """Whether the field was added to a published document."""
        return self.unwritten is not _ALWAYS_WRITTEN


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """A dataclass; in JSON, an object with exactly its fields, in the order of the class."""

    cls: type

    @property
    def words(self) -> str:
        """Description of the expected value."""
        return f"an object with the fields of {self.cls.__name__}"

    @property
    def example(self) -> str:
        """Example of a valid value."""
        required = [field for field in fields_of(self.cls).values() if field.required]
        return "{" + ", ".join(f'"{field.name}": ...' for field in required) + "}"

    def read(self, data: object) -> Any:
        """Read a JSON object. Unknown fields are reported first: a misspelt field is also a missing one."""
        if not isinstance(data, Mapping):
            raise FieldError(f"must be {self.words}, got {shown(data)}", fix=f"Write {self.example}")
        fields = fields_of(self.cls)
        for key in data:
            if key not in fields:
                raise unknown_field(key, data[key], {name: field.shape for name, field in fields.items()})
        values = {}
        for name, field in fields.items():
            if name in data:
                try:
                    values[name] = field.shape.read(data[name])
                except FieldError as error:
                    raise error.under(name) from None
            elif field.required:
                raise FieldError("is missing", fix=_how_to_add(name, field.shape), path=(name,))
        return self.cls(**values)

    def check(self, value: object) -> Any:
        """Check that the value is an instance; it was validated on construction."""
        if not isinstance(value, self.cls):
            raise FieldError(f"must be a {self.cls.__name__}, got {shown(value)}", fix=f"Pass a {self.cls.__name__}")
        return value

    def write(self, value: Any) -> dict[str, Any]:
        """Return every field, including nulls, in the order of the class; an added one only if it says something."""
        given = ((field, getattr(value, name)) for name, field in fields_of(self.cls).items())
        return {field.name: field.shape.write(item) for field, item in given if item != field.unwritten}


def _how_to_add(name: str, shape: FieldType) -> str:
    return f'Add "{name}": it is {shape.words}; write for example {shape.example}'


def fields_of(cls: type) -> Mapping[str, Field]:
    """Return the fields of a dataclass with their types, in order."""
    return _compiled_fields(cls)


@functools.cache
def _compiled_fields(cls: type) -> Mapping[str, Field]:
    hints = get_type_hints(cls, include_extras=True)
    fields = {}
    for field in dataclasses.fields(cls):
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        absent, label = field.metadata.get("absent", "not known"), field.metadata.get("label")
        unwritten = field.default if field.metadata.get("added") else _ALWAYS_WRITTEN
        fields[field.name] = Field(field.name, field_type_of(hints[field.name]), required, absent, label, unwritten)
    return types.MappingProxyType(fields)


def field_type_of(hint: Any) -> FieldType:
    """Return the field type for a type hint. An unsupported hint is a bug, hence a `TypeError`."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return Choice(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return Record(hint)
    shape = _shape_of_generic(get_origin(hint), get_args(hint))
    if shape is None:
        raise TypeError(f"the type hint {hint!r} has no JSON form")
    return shape


def _shape_of_generic(origin: Any, args: tuple[Any, ...]) -> FieldType | None:
    if origin is Annotated:
        # The outermost annotation is the last one, and it wins: Annotated[Seconds, ...] refines Seconds.
        own = [extra for extra in reversed(args[1:]) if isinstance(extra, FieldType)]
        return own[0] if own else field_type_of(args[0])
    if origin in (Union, types.UnionType):
        return _shape_of_union(args)
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return ListType(field_type_of(args[0]))
    if origin is Mapping and args[0] is str:
        return MapType(field_type_of(args[1]))
    return None


def _shape_of_union(args: tuple[Any, ...]) -> FieldType | None:
    members = tuple(arg for arg in args if arg is not types.NoneType)
    if len(members) == 1:
        inner = field_type_of(members[0])
    elif all(member in _PLAIN for member in members):
        inner = Scalar(members)
    else:
        return None
    return inner if len(members) == len(args) else OptionalType(inner)


def check_fields(value: object) -> None:
    """Check every field of a dataclass instance against its hint. Call it from `__post_init__`.

    A field is replaced by its checked form if that differs (30 for a float field, a dict for a mapping field), so that
    equal values are written as equal texts.
    """
    for name, field in fields_of(type(value)).items():
        given = getattr(value, name)
        try:
            checked = field.shape.check(given)
        except FieldError as error:
            raise error.under(name) from None
        if checked is not given:
            object.__setattr__(value, name, checked)  # the value is frozen, but nobody else has it yet


def check_order(value: object, *names: str) -> None:
    """Check that the fields are in ascending order: baseline <= peak, min <= p50 <= p90."""
    for smaller, larger in itertools.pairwise(names):
        low, high = getattr(value, smaller), getattr(value, larger)
        if low > high:
            raise FieldError(
                f"is {shown(high)}, below '{smaller}', which is {shown(low)}",
                fix=f"These fields must hold {' <= '.join(names)}",
                path=(larger,),
            )
