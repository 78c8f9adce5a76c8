"""Argument values that several commands parse: KEY=VALUE settings, and quantities with a unit."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from edgefl.errors import EdgeFLError

if TYPE_CHECKING:
    from edgefl.values import Setting

__all__ = ["quantity", "settings"]


def settings(words: Sequence[str]) -> "dict[str, Setting]":
    """Parse KEY=VALUE words; a value is a number, true or false, or otherwise a string."""
    found: dict[str, Setting] = {}
    for word in words:
        key, sign, text = word.partition("=")
        if not sign:
            raise EdgeFLError(f"{word!r} is not a setting", fix="Write KEY=VALUE, such as learning_rate=0.1.")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        found[key] = value if isinstance(value, bool | int | float | str) else text
    return found


def quantity(kind: Any, text: str, option: str) -> float:
    """Convert a text such as '2 min' or 600 to the base unit of a quantity type of `edgefl.values`."""
    from edgefl.values import FieldError
    from edgefl.values.dataclass_fields import field_type_of

    try:
        value: object = float(text)
    except ValueError:
        value = text
    try:
        return float(field_type_of(kind).read(value))
    except FieldError as error:
        raise EdgeFLError(f"{option} {error.says}", fix=error.fix) from None
