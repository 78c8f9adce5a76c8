"""Texts as types: names, identifiers, digests, points in time, and seeds.

Each is a `str` (a seed: an `int`) to the type checker, and carries its form for the code that reads JSON and
the code that checks a value on construction. This is the one place that says what a digest looks like.
"""

import hashlib
import numbers
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from edgefl.errors import SchemaError
from edgefl.values.field_error import FieldError, shown

__all__ = [
    "Text",
    "Name",
    "Identifier",
    "Digest",
    "Timestamp",
    "Seed",
    "UnsignedText",
    "ANY_TEXT",
    "NAME",
    "digest_of",
    "check_digest",
    "timestamp_of",
]


@dataclass(frozen=True, slots=True)
class Text:
    """How a text is read, checked and written. The metadata of the text types below."""

    words: str
    example: str
    fits: Callable[[str], bool]

    def read(self, data: object) -> str:
        """From JSON: the same text."""
        return self.check(data)

    def check(self, value: object) -> str:
        """A text of the right form."""
        if not isinstance(value, str):
            raise FieldError(f"is {self.words}, got {shown(value)}, which is not a text", fix=self._advice)
        if not self.fits(value):
            raise FieldError(f"is {self.words}, got {shown(value)}", fix=self._advice)
        return str.__str__(value)  # a plain text, even of a member of some enumeration

    def write(self, value: str) -> str:
        """To JSON: the same text."""
        return value

    @property
    def _advice(self) -> str:
        return f"Write for example {self.example}"


@dataclass(frozen=True, slots=True)
class UnsignedText:
    """A whole number that JSON carries as a decimal text.

    JavaScript and several JSON libraries read every number as a 64-bit float, which keeps 53 bits. A seed
    has 64, and a seed that lost its last digits would silently give other noise on the other side. So it is
    a text always, small or large: a form that depends on the value is found out by nobody until it is
    large.
    """

    bits: int

    @property
    def words(self) -> str:
        """What the field is."""
        return f"a whole number of 0 to 2^{self.bits} - 1, in JSON written as a text of decimal digits"

    @property
    def example(self) -> str:
        """What to write."""
        return "'1234'"

    def read(self, data: object) -> int:
        """From JSON: decimal digits, with no sign and no leading zero."""
        if not isinstance(data, str) or not _DECIMAL.fullmatch(data):
            fix = f"Write it in quotes, for example {self.example}"
            raise FieldError(f"is {self.words}, got {shown(data)}", fix=fix)
        return self.check(int(data))

    def check(self, value: object) -> int:
        """A Python integer in range. A numpy integer becomes one."""
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise FieldError(f"is {self.words}, got {shown(value)}", fix="Pass an integer")
        number = int(value)
        if not 0 <= number < 2**self.bits:
            raise FieldError(f"is {self.words}, got {shown(number)}", fix=f"Take it modulo 2^{self.bits}")
        return number

    def write(self, value: int) -> str:
        """To JSON: decimal digits."""
        return str(value)


_DECIMAL = re.compile(r"0|[1-9][0-9]{0,38}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")
_LONGEST_NAME = 200


def _is_text(text: str) -> bool:
    """JSON may hold half a surrogate pair, which no file and no network connection can carry on."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _LONGEST_NAME and text.isprintable() and text == text.strip()


def _is_timestamp(text: str) -> bool:
    if not _TIMESTAMP.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:  # the 31st of February
        return False
    return True


ANY_TEXT = Text("a text", "'some text'", _is_text)
NAME = Text(f"a name of 1 to {_LONGEST_NAME} printable characters, on one line", "'raspberry-pi-4'", _is_name)

Name = Annotated[str, NAME]
"""Words for a person: a device's name, an engine, a source of measurements."""

Identifier = Annotated[
    str,
    Text(
        "an identifier of 1 to 128 letters, digits and . _ : - that starts with a letter or a digit",
        "'task-7'",
        lambda text: _IDENTIFIER.fullmatch(text) is not None,
    ),
]
"""What names a thing in a URL, so it holds no character that would have to be escaped there."""

Digest = Annotated[
    str,
    Text(
        "a digest: 'sha256:' and 64 lower-case hexadecimal digits",
        "'sha256:" + "0123456789abcdef" * 4 + "'",
        lambda text: _DIGEST.fullmatch(text) is not None,
    ),
]
"""Names content by its SHA-256."""

Timestamp = Annotated[
    str,
    Text("a point in time in UTC, in ISO 8601 ending in Z", "'2026-01-31T12:00:00Z'", _is_timestamp),
]
"""A point in time; UTC always, because devices of one fleet live in many time zones."""

Seed = Annotated[int, UnsignedText(64)]
"""An unsigned 64-bit number; in JSON a text of decimal digits."""


def digest_of(content: bytes) -> str:
    """The digest of some bytes, as every `Digest` field holds it."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def check_digest(text: str) -> str:
    """The text itself if it is a digest, else a `SchemaError`. For digests outside documents, as in a URL."""
    if not isinstance(text, str) or not _DIGEST.fullmatch(text):
        raise SchemaError(
            f"{shown(text)} is not a digest",
            fix="A digest is 'sha256:' and 64 lower-case hexadecimal digits",
        )
    return text


def timestamp_of(moment: datetime) -> str:
    """A moment as a `Timestamp`, in whole seconds: `timestamp_of(datetime.now(UTC))`."""
    if moment.tzinfo is None:
        raise SchemaError(f"the moment {moment.isoformat()} has no time zone", fix="Take it from datetime.now(UTC)")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
