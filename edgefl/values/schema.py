"""Documents: values with a schema tag, and their JSON form.

A document is a frozen dataclass registered under a kind and a version, with which its JSON object begins:
`"schema": "edgefl.device_profile/1"`. Any package defines its own kinds with the `document` decorator; a kind is known
once its module is imported.

The JSON form is canonical, so equal values give equal texts: the tag first, then every field in the order of the class
(including nulls, but without fields that were added later and have their default), mapping keys sorted, quantities in
base units, no spaces. (Settings of 1 and of 1.0 are equal in
Python but differ in the text.)
"""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from edgefl.errors import SchemaError
from edgefl.values.dataclass_fields import Record
from edgefl.values.field_error import FieldError, shown
from edgefl.values.strict_json import parse
from edgefl.values.tolerant_reading import known_fields

__all__ = ["DocumentKind", "document", "kinds", "to_json", "from_json", "dumps", "loads", "read"]

T = TypeVar("T")

_TAG = re.compile(r"edgefl\.(?P<kind>[a-z][a-z0-9_]{0,63})/(?P<version>[1-9][0-9]{0,5})")
_KIND_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """One kind of document: its name, the version this EdgeFL reads and writes, and its class."""

    name: str
    version: int
    cls: type

    @property
    def tag(self) -> str:
        """The value of the document's field `schema`."""
        return f"edgefl.{self.name}/{self.version}"


_kinds: dict[str, DocumentKind] = {}


def document(name: str, *, version: int) -> Callable[[type[T]], type[T]]:
    """Register a frozen dataclass as a kind of document:

        @document("budget", version=1)
        @dataclass(frozen=True, slots=True, kw_only=True)
        class Budget: ...

    Increase the version whenever a reader of the old one would misunderstand the new one.
    """

    def register(cls: type[T]) -> type[T]:
        if not is_dataclass(cls) or _KIND_NAME.fullmatch(name) is None or version < 1:
            raise TypeError(f"{cls.__name__} cannot be the document {name!r}, version {version}")
        if any(field.name == "schema" for field in fields(cls)):
            raise TypeError(f"{cls.__name__} has a field named schema, where the schema tag goes")
        other = _kinds.get(name)
        if other is not None and _full_name(other.cls) != _full_name(cls):
            raise TypeError(f"two classes claim to be the document {name!r}: {other.cls!r} and {cls!r}")
        _kinds[name] = DocumentKind(name, version, cls)
        return cls

    return register


def _full_name(cls: type) -> str:
    # Not the class itself: reloading a module makes a new class of the same name.
    return f"{cls.__module__}.{cls.__qualname__}"


def kinds() -> Mapping[str, DocumentKind]:
    """Return every registered kind of document, by name."""
    return MappingProxyType(_kinds)


def to_json(value: Any) -> dict[str, Any]:
    """Return the JSON form of a value as plain Python data. Documents get a schema tag, nested values do not."""
    kind = _kind_of(type(value))
    body = Record(type(value)).write(value)
    return body if kind is None else {"schema": kind.tag, **body}


def dumps(value: Any, *, indent: int | None = None) -> str:
    """Return the JSON text of a value: canonical, or indented for people with `indent`."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(to_json(value), ensure_ascii=False, allow_nan=False, indent=indent, separators=separators)


def from_json(cls: type[T], data: object, *, tolerant: bool = False) -> T:
    """Return the value of class `cls` in JSON data. Raise `SchemaError` for anything else.

    A `tolerant` reader ignores fields that it does not know, at every level: a later version may have added them.
    """
    kind = _kind_of(cls)
    if kind is not None:
        data = _untagged(data, expected=kind)[1]
    value: T = Record(cls).read(known_fields(Record(cls), data) if tolerant else data)
    return value


def loads(cls: type[T], text: str | bytes, *, tolerant: bool = False) -> T:
    """Return the value of class `cls` in a JSON text. Raise `SchemaError` for anything else."""
    return from_json(cls, parse(text), tolerant=tolerant)


def read(text: str | bytes) -> Any:
    """Return the value in a JSON text, of the kind named by its schema tag. Raise `SchemaError` if invalid."""
    kind, body = _untagged(parse(text), expected=None)
    return Record(kind.cls).read(body)


def _kind_of(cls: type) -> DocumentKind | None:
    return next((kind for kind in _kinds.values() if kind.cls is cls), None)


def _untagged(data: object, *, expected: DocumentKind | None) -> tuple[DocumentKind, dict[str, Any]]:
    """Return the kind of a document, and its fields without the tag."""
    if expected is not None and isinstance(data, Mapping) and data.get("schema") == expected.tag:
        return expected, {key: item for key, item in data.items() if key != "schema"}
    wanted = f"'{expected.tag}'" if expected else "for example " + ", ".join(f"'{k.tag}'" for k in _kinds.values())
    if not isinstance(data, Mapping):
        raise FieldError(
            f"must be a JSON object with a schema tag, got {shown(data)}",
            fix=f'Write {{"schema": ..., ...}} with the tag {wanted}',
        )
    if "schema" not in data:
        raise FieldError("is missing", fix=f'Add "schema": {wanted}', path=("schema",))
    tag = data["schema"]
    match = _TAG.fullmatch(tag) if isinstance(tag, str) else None
    if match is None:
        raise FieldError(f"is not a schema tag: {shown(tag)}", fix=f"Write {wanted}", path=("schema",))
    kind = _matching_kind(match["kind"], int(match["version"]), expected)
    return kind, {key: item for key, item in data.items() if key != "schema"}


def _matching_kind(name: str, version: int, expected: DocumentKind | None) -> DocumentKind:
    if expected is not None and name != expected.name:
        raise SchemaError(
            f"this document is a '{name}' (field 'schema'), but a '{expected.name}' is needed",
            fix=f"Pass a document with the schema '{expected.tag}'",
        )
    kind = _kinds.get(name)
    if kind is None:
        near = "".join(f"Did you mean '{match}'? " for match in difflib.get_close_matches(name, _kinds, n=1))
        raise SchemaError(
            f"'{name}' (field 'schema') is not a known kind of document",
            fix=f"{near}Known: {', '.join(sorted(_kinds))}. If a newer EdgeFL made it, upgrade",
        )
    if version > kind.version:
        raise SchemaError(
            f"this '{name}' was made by a newer EdgeFL (schema version {version}; this one reads version "
            f"{kind.version})",
            fix="Upgrade EdgeFL",
        )
    if version < kind.version:
        raise SchemaError(
            f"this '{name}' was made by an older EdgeFL (schema version {version}; this one reads version "
            f"{kind.version})",
            fix="Make the document again with this version",
        )
    return kind
