"""Errors with the path of the offending field.

A check deep inside a document (say, of `joules`) knows neither the field nor the document around it. It raises a
`FieldError` with an empty path, and each enclosing level prepends its own name, until the message reads
`field 'telemetry.energy.joules' ...`. All input checks in `edgefl.values` raise these.
"""

import re

from edgefl.errors import SchemaError

__all__ = ["FieldError", "Path", "path_text", "shown"]

Path = tuple[str | int, ...]

_PLAIN_PART = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_SHOWN = 60


class FieldError(SchemaError):
    """A `SchemaError` about one field, found at `path`.

    `says` is the message without its subject: "must be a time in seconds, got '512 MiB', which is a size".
    """

    def __init__(self, says: str, *, fix: str, path: Path = ()) -> None:
        subject = f"field '{path_text(path)}'" if path else "the document"
        super().__init__(f"{subject} {says}", fix=fix)
        self.says = says
        self.path = path

    def under(self, part: str | int) -> "FieldError":
        """Return the same error with one more level of path."""
        return FieldError(self.says, fix=self.fix, path=(part, *self.path))


def path_text(path: Path) -> str:
    """Return a path as people write it: `telemetry.energy.joules`, `layers[3].name`, `settings["a b"]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_PART.fullmatch(part) and len(part) <= _LONGEST_SHOWN:
            text += f".{part}" if text else part
        else:
            text += f"[{shown(part)}]"
    return text


def shown(value: object) -> str:
    """Return an offending value as short text that is safe to print.

    The value may be anything from outside: megabytes of text, unpaired surrogates, integers too long for Python to
    print.
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return repr(value) if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]!r}..."
    if isinstance(value, int):
        return repr(value) if value.bit_length() <= 128 else f"an integer of {value.bit_length()} bits"
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, dict):
        return "an object"
    return f"a {type(value).__name__}"
