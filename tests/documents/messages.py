"""docs/messages.md, written from the classes: every field of every message between devices and the coordinator.

`python -m tests.test_documents` writes the file anew; a test says when that is due.
"""

import ast
import dataclasses
import inspect
import itertools
import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any

from edgefl.values import Digest, FieldType, Identifier, Quantity, Timestamp, kinds
from edgefl.values.containers import ListType, MapType, OptionalType
from edgefl.values.dataclass_fields import Record, fields_of
from edgefl.values.field_types import Choice, Scalar
from edgefl.values.strings import NAME, Text, UnsignedText
from edgefl.values.units import Dimension
from tests.documents.commands import ROOT

__all__ = ["MESSAGES", "PAGE", "cell_of", "messages_page", "parts_of", "rows_of"]

PAGE = ROOT / "docs" / "messages.md"
MESSAGES = {
    "sample": "`GET /v1/sample` answers it; `sample.json` of a bundle has it.",
    "measurement": "`GET /v1/measurement` answers it. [profile.md](profile.md) says how to use it.",
    "enrolment": "The body of `POST /v1/devices`.",
    "device_profile": "In an enrolment, and the body of `PUT /v1/devices/me/profile`.",
    "sample_count": "The body of `PUT /v1/devices/me/samples`.",
    "capabilities": "In an enrolment, and the body of `PUT /v1/devices/me/capabilities`.",
    "enrolled": "`POST /v1/devices` answers it.",
    "pins": "`GET /v1/pins` answers it. [protocol.md](protocol.md#pins) says what a pin is.",
    "assignment": "`POST /v1/tasks/next` answers it.",
    "client_plan": "In an assignment.",
    "submodel": "An artifact, named by `tensors` of a plan.",
    "program": "An artifact, named by `program` or `inference_program` of a plan; the program file is another.",
    "local_result": "In `about` of an update, which is the body of `PUT /v1/tasks/{task_id}/result`.",
    "telemetry": "In a local result. [telemetry.md](telemetry.md) says how to measure it.",
    "refusal": "The body of `PUT /v1/tasks/{task_id}/refusal`.",
    "receipt": "Results and refusals are answered with it.",
}
"""The documents of the page, in its order, and where each is sent."""

_HEAD = """\
# Messages

<!-- This file is written by `python -m tests.test_documents` from the classes. Do not edit it by hand. -->

Every field of every message between a device and the coordinator; [protocol.md](protocol.md) says when they are sent.
The same is in `/openapi.json` of a coordinator, as JSON Schema.

- A message is a JSON object in UTF-8. A whole message begins with its `schema`; a document inside another one has no
  `schema`. The order of fields means nothing.
- A field without a default is required. A field with a default may be left out, which means its default.
- `null` may stand only where the type says so.
- The coordinator refuses unknown fields, numbers out of range, NaN, and keys that appear twice. A client ignores fields
  that it does not know: later versions add some. New values of an enumeration, and fields that change the meaning of
  others, come only with a new version of the schema.
- Quantities are numbers in the unit of the type. Integers are below 2^53. The coordinator also reads a text with a
  unit (`"250 ms"`), but between programs write numbers.

| type | is |
| --- | --- |
| name | a text of 1 to 200 printable characters on one line, without spaces at its ends |
| identifier | a text of 1 to 128 letters, digits, `.`, `_`, `:` and `-` that starts with a letter or a digit |
| digest | `sha256:` and 64 lower-case hexadecimal digits |
| time | UTC in ISO 8601, such as `2026-01-31T12:00:00Z`, with up to 6 digits of a second |
| seed | a string of decimal digits without leading zeros: 0 to 2^64 - 1 |
"""
_UNITS = {
    Dimension.TIME: "seconds",
    Dimension.SIZE: "bytes",
    Dimension.ENERGY: "joules",
    Dimension.POWER: "watts",
    Dimension.TEMPERATURE: "degrees Celsius",
    Dimension.FREQUENCY: "hertz",
    Dimension.DATA_RATE: "bytes per second",
    Dimension.TIME_PER_MULTIPLY_ADD: "seconds per multiply-add",
}
_TEXTS = {
    NAME: "name",
    Identifier.__metadata__[0]: "identifier",  # type: ignore[attr-defined]
    Digest.__metadata__[0]: "digest",  # type: ignore[attr-defined]
    Timestamp.__metadata__[0]: "time",  # type: ignore[attr-defined]
}
_CONSTRAINTS = {
    "Latency": "`min_step_seconds` <= `p50_step_seconds` <= `p90_step_seconds` <= `round_seconds`.",
    "Memory": "`baseline_bytes` <= `peak_bytes`.",
    "Thermal": "At least one field is not null; without any, `thermal` itself is null.",
    "DeviceProfile": "`memory_free_bytes` <= `memory_total_bytes`. More is checked: [profile.md](profile.md).",
    "LocalResult": "Every number is finite.",
    "SampleSpec": "`class_names` has `classes` entries, of at most 48 KiB together. `shape` has at most 8 sizes, "
    "`normalisation` at most 256 channels. The bytes of an example fit `shape` and its types.",
    "SampleNormalisation": "`mean` and `std` have equal lengths: 1, or the first size of `shape`. `std` and `scale` "
    "are above 0. In double precision: f = 1 / (scale * std), o = mean / std. In float32: x = raw * float32(f) - "
    "float32(o), a product and then a difference, each rounded. f and o are finite in float32.",
    "Capabilities": "`engines` has at most 16 entries, the other lists at most 256. The texts in `engines`, `rules` "
    "and `codecs` have at most 8,192 characters together.",
}


def messages_page() -> str:
    """Return the whole document."""
    lines, seen = [_HEAD], set[type]()
    for name, where in MESSAGES.items():
        kind = kinds()[name]
        lines += [f"## {name}", "", f'`"schema": "{kind.tag}"`. {_text(_docstring(kind.cls))} {where}', ""]
        lines += [*_constraint(kind.cls), *_table(kind.cls)]
        for part in parts_of(kind.cls):
            if part not in seen:
                seen.add(part)
                lines += [f"### {part.__name__}", "", _text(_docstring(part)), "", *_constraint(part), *_table(part)]
    return "\n".join(lines).rstrip() + "\n"


def parts_of(cls: type) -> Iterator[type]:
    """Yield the classes inside a document that are no documents themselves."""
    for field in fields_of(cls).values():
        inner = _record(field.shape)
        if inner is not None and inner not in {kind.cls for kind in kinds().values()}:
            yield inner
            yield from parts_of(inner)


def rows_of(cls: type) -> dict[str, tuple[str, str, str]]:
    """Return the type, the default and the meaning of every field, by name."""
    about = _attribute_docstrings(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    return {
        name: (cell_of(field.shape), _default(fields[name]), _text(about[name]))
        for name, field in fields_of(cls).items()
    }


def cell_of(shape: FieldType) -> str:
    """Return a type in words."""
    match shape:
        case OptionalType(inner):
            return f"{cell_of(inner)}, or null"
        case Record(cls):
            name = next((kind.name for kind in kinds().values() if kind.cls is cls), None)
            return f"[{name or cls.__name__}](#{name or cls.__name__.lower()})"
        case ListType(item):
            return f"list of {cell_of(item)}"
        case MapType(item):
            return f"object of names to {cell_of(item)}"
        case _:
            return _plain_cell(shape)


def _plain_cell(shape: FieldType) -> str:
    match shape:
        case Choice(choices):
            return "one of " + ", ".join(f"`{choice}`" for choice in choices)
        case Scalar():
            return "true or false, number or text"
        case UnsignedText():
            return "seed"
        case Text():
            return _TEXTS.get(shape, shape.words)
        case Quantity():
            return _number(shape)
        case _:
            return shape.words


def _number(shape: Quantity) -> str:
    unit = _UNITS.get(shape.dimension)
    high = shape.high if shape.high is not None and shape.high < 2**52 else None
    bounds = "" if shape.low is None else f" >= {shape.low:g}" if high is None else f" from {shape.low:g} to {high:g}"
    return f"{'integer' if shape.whole else 'number'}{bounds}" + ("" if unit is None else f", in {unit}")


def _record(shape: FieldType) -> type | None:
    match shape:
        case Record(cls):
            return cls
        case OptionalType(inner) | ListType(inner) | MapType(inner):
            return _record(inner)
        case _:
            return None


def _default(field: "dataclasses.Field[Any]") -> str:
    if field.default is not dataclasses.MISSING:
        return f"`{json.dumps(field.default)}`"
    if field.default_factory is dataclasses.MISSING:
        return "required"
    made = field.default_factory()
    return "`{}`" if made == {} or dataclasses.is_dataclass(made) else f"`{json.dumps(made)}`"


def _table(cls: type) -> list[str]:
    rows = [f"| `{name}` | {' | '.join(cells)} |" for name, cells in rows_of(cls).items()]
    return ["| field | type | default | meaning |", "| --- | --- | --- | --- |", *rows, ""]


def _constraint(cls: type) -> list[str]:
    return [_CONSTRAINTS[cls.__name__], ""] if cls.__name__ in _CONSTRAINTS else []


def _docstring(cls: type) -> str:
    return (cls.__doc__ or "").strip().partition("\n\n")[0]


def _text(text: str) -> str:
    return re.sub(r"\bNone\b", "null", " ".join(text.split())).replace("|", "\\|")


def _attribute_docstrings(cls: type) -> dict[str, str]:
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, after in itertools.pairwise(body.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(after, ast.Expr)
            assert isinstance(after.value, ast.Constant)
            found[field.target.id] = str(after.value.value)
    return found
