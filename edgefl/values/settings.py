"""Settings: plain scalars by name that become a dataclass, chosen by its name. Local rules and strategies are made so.

The settings of a class are its fields. The fields of a dataclass within it, such as `descent`, are settings by their
own names, because a plan or a file holds plain scalars only: {"learning_rate": 0.1, "codec": "sparse"}.
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

__all__ = ["chosen", "settings_from", "settings_of"]

T = TypeVar("T")


def chosen(what: str, known: Mapping[str, type[T]], name: str, settings: Mapping[str, Setting]) -> T:
    """Make the one of the `known` classes that has this name; a `SchemaError` says what is wrong with it.

    `what` is the word for one of them, such as 'strategy'.
    """
    cls = known.get(name)
    if cls is None:
        near = difflib.get_close_matches(name[:100], known, n=1)
        advice = f"Did you mean {near[0]!r}? " if near else ""
        raise SchemaError(f"there is no {what} {shown(name)}", fix=f"{advice}Known are: {', '.join(known)}.")
    try:
        _check_known(settings, settings_of(cls))
        return cls(**_values(cls, settings))
    except FieldError as error:
        raise error.under("settings") from None


def settings_of(cls: type) -> dict[str, FieldType]:
    """Return what each setting of a class may be, by name."""
    found: dict[str, FieldType] = {}
    for name, field in fields_of(cls).items():
        if isinstance(field.shape, Record):
            found |= settings_of(field.shape.cls)
        else:
            found[name] = field.shape
    return found


def settings_from(value: object) -> dict[str, Setting]:
    """Return all settings of a value, as plain scalars: `chosen` makes an equal value from them."""
    found: dict[str, Setting] = {}
    for name, field in fields_of(type(value)).items():
        given = getattr(value, name)
        if isinstance(field.shape, Record):
            found |= settings_from(given)
        elif given is not None:
            found[name] = field.shape.write(given)
    return found


def _check_known(given: Mapping[str, Setting], known: Mapping[str, FieldType]) -> None:
    for name, value in given.items():
        if name not in known:
            raise unknown_field(name, value, known)


def _values(cls: type, given: Mapping[str, Setting], default: object = None) -> dict[str, Any]:
    """Return those fields of a dataclass that the settings say something about; `default` is what they change."""
    values: dict[str, Any] = {}
    defaults = {field.name: field for field in dataclasses.fields(cls)}
    for name, field in fields_of(cls).items():
        if isinstance(field.shape, Record):
            factory = defaults[name].default_factory
            # What a class changes of the inner defaults stays, unless the settings say otherwise.
            own = field.shape.cls() if factory is dataclasses.MISSING else factory()
            base = own if default is None else getattr(default, name)
            values[name] = dataclasses.replace(base, **_values(field.shape.cls, given, base))
        elif name in given:
            try:
                values[name] = field.shape.read(given[name])
            except FieldError as error:
                raise error.under(name) from None
    return values
