"""JSON Schema of the values in `edgefl.values`, for the OpenAPI document, from the shapes that also read them.

A quantity may also be written as a text with its unit ('250 ms'); between machines it is a number, so the schema says
that.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from edgefl.federation.settings import (
    BudgetCaps,
    BufferingSettings,
    EvaluationSettings,
    FederationSettings,
    RoundSettings,
    SelectionSettings,
    UploadLimits,
)
from edgefl.model_graph import ModelGraph
from edgefl.values import (
    Assignment,
    Capabilities,
    DeviceProfile,
    Digest,
    Enrolled,
    Enrolment,
    FieldType,
    Identifier,
    LocalResult,
    Measurement,
    Pins,
    Program,
    Quantity,
    Receipt,
    Refusal,
    SampleCount,
    SampleSpec,
    Submodel,
    Timestamp,
    kinds,
)
from edgefl.values.containers import ListType, MapType, OptionalType
from edgefl.values.dataclass_fields import Field, Record, fields_of
from edgefl.values.field_types import Choice, Flag, Scalar
from edgefl.values.strings import NAME, Text, UnsignedText

__all__ = ["DIGEST", "IDENTIFIER", "document_schemas", "reference"]

IDENTIFIER = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$"
DIGEST = r"^sha256:[0-9a-f]{64}$"

_REQUESTS = (Enrolment, DeviceProfile, Capabilities, SampleCount, LocalResult, Refusal, FederationSettings, Program)
_ANSWERS = (Enrolled, Pins, Assignment, Receipt, SampleSpec, Measurement, Submodel, ModelGraph)
_DOCUMENTS = (*_REQUESTS, *_ANSWERS)
_PREFIX = "#/components/schemas/"
_PUBLISHED_NAMES: Mapping[type, str] = {
    RoundSettings: "Rounds",
    SelectionSettings: "Selection",
    BufferingSettings: "Buffering",
    EvaluationSettings: "Evaluation",
    UploadLimits: "Limits",
    BudgetCaps: "Caps",
}
"""Schemas whose published name is not that of their class: the document must not change with the code."""

_TEXTS: Mapping[Text, dict[str, Any]] = {
    NAME: {
        "minLength": 1,
        "maxLength": 200,
        "pattern": r"^[^\s\x00-\x1f\x7f-\x9f]([^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f])?$",
    },
    Identifier.__metadata__[0]: {"pattern": IDENTIFIER},  # type: ignore[attr-defined]
    Digest.__metadata__[0]: {"pattern": DIGEST},  # type: ignore[attr-defined]
    Timestamp.__metadata__[0]: {"format": "date-time", "pattern": r"^[0-9]{4}-.*Z$"},  # type: ignore[attr-defined]
}
_SCALARS = {bool: "boolean", int: "integer", float: "number", str: "string"}


def reference(name: str) -> dict[str, Any]:
    """Return a reference to a schema of the document."""
    return {"$ref": _PREFIX + name}


def document_schemas() -> dict[str, Any]:
    """Return the schemas of all documents between devices and the coordinator, by class name."""
    found: dict[str, Any] = {"Problem": _PROBLEM}
    tags = {kind.cls: kind.tag for kind in kinds().values()}
    for cls in _DOCUMENTS:
        whole = _record(cls, found)
        whole["properties"] = {"schema": {"type": "string", "const": tags[cls]}} | whole["properties"]
        whole["required"] = ["schema", *whole["required"]]
        found[cls.__name__] = whole
    for name in _reachable(_ANSWERS, found):
        del found[name]["additionalProperties"]  # later versions add fields, which clients ignore
    return found


def _reachable(documents: Iterable[type], found: Mapping[str, Any]) -> set[str]:
    """Return the names of some documents and of everything inside them."""
    names, waiting = set[str](), [cls.__name__ for cls in documents]
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            waiting += [each.removeprefix(_PREFIX) for each in _references(found[name])]
    return names


def _references(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from (target for key, target in part.items() if key == "$ref")
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from _references(inner)


_PROBLEM = {
    "type": "object",
    "description": "Why something was not done, and what to do.",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"problem": {"type": "string"}, "fix": {"type": "string"}},
            "required": ["problem", "fix"],
            "additionalProperties": False,
        }
    },
    "required": ["error"],
    "additionalProperties": False,
}


def _record(cls: type, found: dict[str, Any]) -> dict[str, Any]:
    fields = fields_of(cls).values()
    return {
        "type": "object",
        "description": (cls.__doc__ or "").strip().partition("\n")[0],
        "properties": {field.name: _schema(field.shape, found) | _default(cls, field) for field in fields},
        "required": [field.name for field in fields if field.required],
        "additionalProperties": False,
    }


def _default(cls: type, field: Field) -> dict[str, Any]:
    """Return what a field that may be left out then means."""
    (own,) = (one for one in dataclasses.fields(cls) if one.name == field.name)
    if field.required:
        return {}
    value = own.default if own.default_factory is dataclasses.MISSING else own.default_factory()
    return {"default": field.shape.write(value)}


def _part(cls: type, found: dict[str, Any]) -> dict[str, Any]:
    """Return a reference to a nested record. Only a whole document has a schema tag."""
    name = f"{cls.__name__}Part" if cls in _DOCUMENTS else _PUBLISHED_NAMES.get(cls, cls.__name__)
    if name not in found:
        found[name] = _record(cls, found)
    return reference(name)


def _schema(shape: FieldType, found: dict[str, Any]) -> dict[str, Any]:
    match shape:
        case Record(cls):
            return _part(cls, found)
        case OptionalType(inner):
            return {"anyOf": [_schema(inner, found), {"type": "null"}]}
        case ListType(item):
            return {"type": "array", "items": _schema(item, found)}
        case MapType(item):
            names = {"minLength": 1, "maxLength": 200, **_TEXTS[NAME]}
            return {"type": "object", "additionalProperties": _schema(item, found), "propertyNames": names}
        case _:
            return _plain_schema(shape)


def _plain_schema(shape: FieldType) -> dict[str, Any]:
    match shape:
        case Flag():
            return {"type": "boolean"}
        case Choice(choices):
            return {"type": "string", "enum": [choice.value for choice in choices]}
        case Scalar(allowed):
            return {"anyOf": [_scalar(kind) for kind in allowed]}
        case Quantity():
            return _quantity(shape)
        case UnsignedText():
            return {"type": "string", "pattern": "^(0|[1-9][0-9]{0,19})$", "description": shape.words}
        case Text():
            return {"type": "string", **_TEXTS.get(shape, {"description": shape.words})}
        case _:
            return {"description": shape.words}


def _scalar(kind: type) -> dict[str, Any]:
    limits = {"minimum": -(2**53) + 1, "maximum": 2**53 - 1} if kind is int else {}
    return {"type": _SCALARS[kind], **limits}


def _quantity(shape: Quantity) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer" if shape.whole else "number", "description": shape.words}
    if shape.low is not None:
        schema["minimum"] = shape.low
    if shape.high is not None:
        schema["maximum"] = shape.high
    return schema
