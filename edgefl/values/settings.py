"""Settings: named scalars that configure a dataclass chosen by name, such as a local rule or a strategy.

The settings of a class are its fields. The fields of a nested dataclass, such as `descent`, are settings under their
own names, because plans and files hold plain scalars only: {"learning_rate": 0.1, "codec": "sparse"}.
"""

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from edgefl.errors import SchemaError
from edgefl.values.client_plan import Setting
from edgefl.values.dataclass_fields import Record, fields_of
from edgefl.values.field_error import FieldError, shown
from edgefl.values.field_types import FieldType
from edgefl.values.unknown_fields import unknown_field

__all__ = ["added_settings", "chosen", "settings_from", "settings_of"]

T = TypeVar("T")


def chosen(what: str, known: Mapping[str, type[T]], name: str, settings: Mapping[str, Setting]) -> T:
    """Make an instance of the `known` class with this name; raise `SchemaError` if name or settings are invalid.

    `what` is the kind of class for messages, such as 'strategy'.
    """
    cls = known.get(name)
    if cls is None:
        near = difflib.get_close_matches(name[:100], known, n=1)
        advice = f"Did you mean {near[0]!r}? " if near else ""
        raise SchemaError(f"unknown {what} {shown(name)}", fix=f"{advice}Known: {', '.join(known)}.")
    try:
        _check_known(settings, settings_of(cls))
        return cls(**_values(cls, settings))
    except FieldError as error:
        raise error.under("settings") from None


def settings_of(cls: type) -> dict[str, FieldType]:
    """Return the field type of each setting of a class, by name."""
    found: dict[str, FieldType] = {}
    for name, field in fields_of(cls).items():
        if isinstance(field.shape, Record):
            found |= settings_of(field.shape.cls)
        else:
            found[name] = field.shape
    return found


def settings_from(value: object) -> dict[str, Setting]:
    """Return the settings of a value as plain scalars; `chosen` makes an equal value from them.

    A setting that was added later is left out while it has its default: readers from before refuse unknown settings.
    """
    found: dict[str, Setting] = {}
    for name, field in fields_of(type(value)).items():
        given = getattr(value, name)
        if isinstance(field.shape, Record):
            found |= settings_from(given)
        elif given is not None and given != field.unwritten:
            found[name] = field.shape.write(given)
    return found


def added_settings(cls: type) -> tuple[str, ...]:
    """Return the settings of a class that were added after its first version: the metadata 'added' says so."""
    found: list[str] = []
    for name, field in fields_of(cls).items():
        if isinstance(field.shape, Record):
            found += added_settings(field.shape.cls)
        elif field.is_added:
            found.append(name)
    return tuple(found)


def _check_known(given: Mapping[str, Setting], known: Mapping[str, FieldType]) -> None:
    for name, value in given.items():
        if name not in known:
            raise unknown_field(name, value, known)


def _values(cls: type, given: Mapping[str, Setting], default: object = None) -> dict[str, Any]:
    """Return the fields of a dataclass that the settings change, relative to `default`."""
    values: dict[str, Any] = {}
    defaults = {field.name: field for field in dataclasses.fields(cls)}
    for name, field in fields_of(cls).items():
        if isinstance(field.shape, Record):
            factory = defaults[name].default_factory
            # A class's own defaults for the nested dataclass stay, unless the settings override them.
            own = field.shape.cls() if factory is dataclasses.MISSING else factory()
            base = own if default is None else getattr(default, name)
            values[name] = dataclasses.replace(base, **_values(field.shape.cls, given, base))
        elif name in given:
            try:
                values[name] = field.shape.read(given[name])
            except FieldError as error:
                raise error.under(name) from None
    return values
