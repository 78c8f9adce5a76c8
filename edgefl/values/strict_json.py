"""Strict JSON parsing.

Python's json module accepts more than JSON and fails in several ways: it accepts NaN, silently drops all but the last
of duplicate keys, turns 1e999 into infinity, and raises RecursionError for deep nesting and ValueError for long
integers. Here each of these is a `SchemaError`.
"""

import itertools
import json
import re
from array import array
from typing import Any

from edgefl.errors import SchemaError
from edgefl.values.field_error import FieldError, Path, shown

__all__ = ["parse", "DEEPEST_NESTING"]

DEEPEST_NESTING = 64
"""Maximum nesting of lists and objects. EdgeFL's own documents have fewer than ten levels."""

_LONGEST_INTEGER = 100
# String literals are skipped as a whole (brackets inside them do not nest). Possessive quantifiers, and a
# closing quote that may be absent, keep the time linear in the length of any text.
_NO_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+|[^\[\]{}"]++', re.DOTALL)
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
"""One level down, and one up, as signed bytes."""


def parse(text: str | bytes) -> Any:
    """Return the data in a JSON text. NaN and infinity pass: their field rejects them, with a path."""
    text = _decoded(text).removeprefix("\ufeff")  # some Windows editors write this mark
    _check_nesting(text)
    repeated: list[tuple[dict[str, Any], str]] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        collected = dict(pairs)
        if len(collected) < len(pairs):
            repeated.append((collected, _first_repeated(pairs)))
        return collected

    try:
        data = json.loads(text, object_pairs_hook=collect, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise SchemaError(
            f"this is not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}",
            fix="Correct the text there; JSON needs double quotes, and no comma after the last item",
        ) from None
    if repeated:
        # An object inside a dropped duplicate is unreachable, but then its parent was recorded after it.
        inside, key = repeated[-1]
        raise FieldError("appears more than once", fix="Keep one of them", path=(*(_path_to(inside, data) or ()), key))
    return data


def _decoded(text: str | bytes) -> str:
    if isinstance(text, str):
        return text
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SchemaError(
            f"this is not valid JSON: byte {error.start} is not UTF-8 text", fix="Save the text as UTF-8"
        ) from None


def _check_nesting(text: str) -> None:
    """Refuse deep nesting, before anything is parsed. No loop in Python goes over a text that may be hostile."""
    if text.count("[") + text.count("{") <= DEEPEST_NESTING:  # as in nearly every document
        return
    steps = _NO_BRACKET.sub("", text).encode().translate(_STEPS)
    if max(itertools.accumulate(array("b", steps)), default=0) > DEEPEST_NESTING:
        raise SchemaError(
            f"the JSON text is nested more than {DEEPEST_NESTING} levels deep",
            fix="No EdgeFL document is that deep; check the origin of this text",
        )


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST_INTEGER:
        raise SchemaError(
            f"the JSON text contains an integer of {len(digits)} characters, {shown(digits)}",
            fix="No EdgeFL field is that large; check the origin of this text",
        )
    return int(digits)


def _first_repeated(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    raise ValueError("no key is repeated")


def _path_to(target: dict[str, Any], data: Any) -> Path | None:
    """Return the path of an object in the data, by identity."""
    if data is target:
        return ()
    inner: Any = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for part, item in inner:
        path = _path_to(target, item)
        if path is not None:
            return (part, *path)
    return None
