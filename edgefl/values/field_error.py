"""Errors that know where in a document they belong.

A check deep inside a document (say, of `joules`) knows neither the field nor the document around it. It
raises a `FieldError` with an empty path, and every level on the way out puts its own name in front, until
the message reads `field 'telemetry.energy.joules' ...`. Everything in `edgefl.values` that checks input
raises these.
"""

import re

from edgefl.errors import SchemaError

__all__ = ["FieldError", "Path", "path_text", "shown"]

Path = tuple[str | int, ...]

_PLAIN_PART = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_SHOWN = 60


class FieldError(SchemaError):
    """A `SchemaError` about one field, found at `path`.

    `says` is the message without its subject: "is a time in seconds, got '512 MiB', which is a size".
    """

    def __init__(self, says: str, *, fix: str, path: Path = ()) -> None:
        subject = f"field '{path_text(path)}'" if path else "the document"
        super().__init__(f"{subject} {says}", fix=fix)
        self.says = says
        self.path = path

    def under(self, part: str | int) -> "FieldError":
        """The same error, seen from one level further out."""
        return FieldError(self.says, fix=self.fix, path=(part, *self.path))


def path_text(path: Path) -> str:
    """A path as a person writes it: `telemetry.energy.joules`, `layers[3].name`, `settings["a b"]`."""
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
    """An offending value, short enough for a message and safe whatever it is.

    Anything that came from outside can end here: megabytes of text, unpaired surrogates, integers so long
    that Python refuses to print them.
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
