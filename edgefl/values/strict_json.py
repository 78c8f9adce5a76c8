"""JSON text to plain Python data, strictly.

The json module of Python accepts more than JSON and fails in more ways than one: it takes NaN, silently
drops all but the last of two equal keys, turns 1e999 into infinity, and answers deep nesting with a
RecursionError and long integers with a ValueError. Text from a network or a text editor gets a
`SchemaError` here for each of these.
"""

import json
import re
from typing import Any

from edgefl.errors import SchemaError
from edgefl.values.field_error import FieldError, Path, shown

__all__ = ["parse", "DEEPEST_NESTING"]

DEEPEST_NESTING = 64
"""Levels of lists and objects inside each other. EdgeFL's own documents have fewer than ten."""

_LONGEST_INTEGER = 100
# A string literal is skipped as a whole (a bracket inside it nests nothing). Possessive quantifiers, and a
# closing quote that may be absent, keep the time linear in the text, whatever the text.
_STRING_OR_BRACKET = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+|[\[\]{}]', re.DOTALL)


def parse(text: str | bytes) -> Any:
    """The data in a JSON text. NaN and infinity are let through: their field refuses them, and has a path."""
    text = _decoded(text).removeprefix("\ufeff")  # some Windows editors begin a file with this mark
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
        # An object inside a dropped duplicate is out of reach, but then its parent was noted after it.
        inside, key = repeated[-1]
        raise FieldError("is there more than once", fix="Keep one of them", path=(*(_path_to(inside, data) or ()), key))
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
    if text.count("[") + text.count("{") <= DEEPEST_NESTING:  # as in nearly every document
        return
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        token = match[0]
        depth += (token in "[{") - (token in "]}")
        if depth > DEEPEST_NESTING:
            raise SchemaError(
                f"the JSON text is nested over {DEEPEST_NESTING} levels deep, at character {match.start()}",
                fix="No EdgeFL document is; check where this text comes from",
            )


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST_INTEGER:
        raise SchemaError(
            f"the JSON text holds an integer of {len(digits)} characters, {shown(digits)}",
            fix="No EdgeFL field is that large; check where this text comes from",
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
    """Where in the data an object is, by identity."""
    if data is target:
        return ()
    inner: Any = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for part, item in inner:
        path = _path_to(target, item)
        if path is not None:
            return (part, *path)
    return None
