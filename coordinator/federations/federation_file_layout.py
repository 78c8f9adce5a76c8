"""Maps the tables of a federation file to the fields of `FederationSettings`, with advice on unknown keys.

`coordinator.federations.federation_file` calls it with the parsed TOML. The tables and keys follow from the fields of
the settings, so a new field can be written in a file at once.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from edgefl.federation.settings import FederationMode, FederationSettings
from edgefl.values import FieldError, FieldType, to_json
from edgefl.values.containers import OptionalType
from edgefl.values.dataclass_fields import Field, Record, fields_of
from edgefl.values.field_error import Path, shown
from edgefl.values.strings import Text
from edgefl.values.unknown_fields import unknown_field

__all__ = ["FileContents", "federation_toml", "settings_data", "settings_path"]

_HEAD = "federation"
_STRATEGY = "strategy"
_NO_LIMIT = "no limit"
_BUNDLE = Text("the path of a bundle of `edgefl export`", "'cnn.zip'", bool)
_MODEL = Field("model", _BUNDLE, required=True, absent="", label=None)


@dataclass(frozen=True, slots=True)
class FileContents:
    """The contents of a file, in the form from which the settings are read."""

    model: str
    settings: dict[str, Any]
    """The JSON form of `FederationSettings`, not checked yet."""


def settings_data(tables: Mapping[str, Any]) -> FileContents:
    """Return the contents of a file's tables. Raise `FieldError`, with its path in the file, for an unknown key."""
    known = _tables()
    for name, table in tables.items():
        if name not in known:
            raise _unknown_table(name, known)
        if not isinstance(table, Mapping):
            raise FieldError(
                f"must be a table, got {shown(table)}",
                fix=f"Write [{name}] on its own line, and its keys below",
                path=(name,),
            )
    if _HEAD not in tables:
        raise FieldError("is missing", fix="Add [federation] with name and model below it", path=(_HEAD,))
    for name in known:
        if name in tables:
            _check_keys(name, tables[name], known)
    _check_mode(tables)
    head = dict(tables[_HEAD])
    try:
        model = _BUNDLE.read(head.pop("model"))
    except FieldError as error:
        raise error.under("model").under(_HEAD) from None
    if "seed" in head:
        head["seed"] = _seed(head["seed"])
    sections = {name: _section(tables[name], known[name]) for name in tables if name not in (_HEAD, _STRATEGY)}
    if _STRATEGY in tables:
        settings = {key: value for key, value in tables[_STRATEGY].items() if key != "name"}
        named = {"name": tables[_STRATEGY]["name"]} if "name" in tables[_STRATEGY] else {}
        sections[_STRATEGY] = {**named, "settings": settings}
    return FileContents(model, {"schema": "edgefl.federation/1", **head, **sections})


def settings_path(path: Path) -> Path:
    """Return where in the file a field of the settings is written."""
    if path and path[0] in _tables()[_HEAD]:
        return (_HEAD, *path)
    if path[:2] == (_STRATEGY, "settings"):
        return (_STRATEGY, *path[2:])
    return path


def federation_toml(settings: FederationSettings, model: str) -> str:
    """Return the text of a file that says the same as some settings, for the bundle at a path."""
    known, data = _tables(), to_json(settings)
    strategy = data[_STRATEGY]
    tables: dict[str, Mapping[str, Any]] = {
        _HEAD: {"model": model} | {name: data[name] for name in known[_HEAD] if name in data},
        _STRATEGY: {"name": strategy["name"], **strategy["settings"]},
    }
    for name in known:
        if name not in tables and data.get(name) is not None and (name != "buffering" or settings.buffered):
            tables[name] = {key: _written(value, known[name][key]) for key, value in data[name].items()}
    return "\n".join(line for title, table in tables.items() for line in _table(title, table)) + "\n"


def _written(value: object, field: Field) -> object:
    """Return a value as a file writes it: TOML has no null, and a limit that has a default is lifted by a text."""
    return _NO_LIMIT if value is None and field.absent == _NO_LIMIT else value


def _table(title: str, values: Mapping[str, Any]) -> list[str]:
    """Return the lines of a table."""
    return [f"[{title}]", *(f"{key} = {_toml(value)}" for key, value in values.items() if value is not None)]


def _toml(value: object) -> str:
    """Return a value on one line. JSON's strings, numbers, truth values and lists of these are TOML's."""
    if not isinstance(value, Mapping):
        return json.dumps(value)
    return "{ " + ", ".join(f"{key} = {_toml(item)}" for key, item in value.items() if item is not None) + " }"


def _tables() -> dict[str, dict[str, Field]]:
    """Return every table of a file with its keys."""
    head: dict[str, Field] = {"model": _MODEL}
    tables: dict[str, dict[str, Field]] = {_HEAD: head}
    for name, field in fields_of(FederationSettings).items():
        shape = field.shape.inner if isinstance(field.shape, OptionalType) else field.shape
        if isinstance(shape, Record):
            tables[name] = dict(fields_of(shape.cls))
        else:
            head[name] = field
    return tables


def _unknown_table(name: str, known: Mapping[str, Mapping[str, Field]]) -> FieldError:
    homes = [table for table in known if name in known[table]]
    if homes:
        return FieldError(
            "is outside of every table", fix=f"Write it below [{homes[0]}], where it belongs", path=(name,)
        )
    near = difflib.get_close_matches(name.lower()[:100], known, n=1)
    advice = f"Did you mean [{near[0]}]? " if near else ""
    every = ", ".join(f"[{table}]" for table in known)
    return FieldError("is not a known table", fix=f"{advice}Known tables: {every}", path=(name,))


def _check_keys(name: str, table: Mapping[str, Any], known: Mapping[str, Mapping[str, Field]]) -> None:
    """Reject unknown keys first: a misspelt key is a better error than the missing one."""
    fields = known[name]
    for key, value in table.items():
        if key in fields or name == _STRATEGY:  # the strategy checks its own settings
            continue
        homes = [other for other in known if key in known[other] and other != _STRATEGY]
        if len(homes) == 1:
            fix = f"It belongs in [{homes[0]}]: move it there"
            raise FieldError("is not a known field", fix=fix, path=(name, key))
        shapes: dict[str, FieldType] = {field.name: field.shape for field in fields.values()}
        raise unknown_field(key, value, shapes).under(name)
    for key, field in fields.items():
        if field.required and key not in table:
            fix = f"Add {key} = {field.shape.example}: it is {field.shape.words}"
            raise FieldError("is missing", fix=fix, path=(name, key))


def _check_mode(tables: Mapping[str, Any]) -> None:
    mode = tables[_HEAD].get("mode", FederationMode.ROUNDS.value)
    if "buffering" in tables and mode == FederationMode.ROUNDS.value:
        raise FieldError(
            f"is for the mode {FederationMode.BUFFERED.value!r}, but the mode is {mode!r}",
            fix=f"Write mode = '{FederationMode.BUFFERED.value}' below [federation], or remove [buffering]",
            path=("buffering",),
        )


def _seed(value: object) -> object:
    """Return a seed as the text that JSON needs. TOML's numbers lose no digits, so here it may be a number."""
    if isinstance(value, str) and value.isdecimal() and value.isascii():
        return value  # up to 2^64 - 1, which other TOML readers cannot hold
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**64:
        raise FieldError(
            f"must be a whole number from 0 to 2^64 - 1, got {shown(value)}",
            fix="Write, for example, seed = 1234",
            path=(_HEAD, "seed"),
        )
    return str(value)


def _section(table: Mapping[str, Any], fields: Mapping[str, Field]) -> dict[str, Any]:
    def lifted(key: str, value: object) -> bool:
        return value == _NO_LIMIT and isinstance(fields[key].shape, OptionalType) and fields[key].absent == _NO_LIMIT

    return {key: None if lifted(key, value) else value for key, value in table.items()}
