"""String types: names, identifiers, digests, timestamps, and seeds.

Each is a `str` (a seed: an `int`) to the type checker, and carries its format for the code that reads JSON and checks
values on construction. This is the one place that defines what a digest looks like.
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
    """How a string is read, checked and written: the metadata of the string types below."""

    words: str
    example: str
    fits: Callable[[str], bool]

    def read(self, data: object) -> str:
        """Read a string."""
        return self.check(data)

    def check(self, value: object) -> str:
        """Check the format of a string."""
        if not isinstance(value, str):
            raise FieldError(f"must be {self.words}, got {shown(value)}, which is not a string", fix=self._advice)
        if not self.fits(value):
            raise FieldError(f"must be {self.words}, got {shown(value)}", fix=self._advice)
        return str.__str__(value)  # a plain string, even for a member of an enumeration

    def write(self, value: str) -> str:
        """Return the string."""
        return value

    @property
    def _advice(self) -> str:
        return f"Write for example {self.example}"


@dataclass(frozen=True, slots=True)
class UnsignedText:
    """A whole number that is a decimal string in JSON.

    JavaScript and several JSON libraries read every number as a 64-bit float, which keeps 53 bits. A seed has 64, and a
    seed that lost its last digits would silently give different noise on the other side. It is always a string, even
    if it is small: a format that depends on the value goes unnoticed until the value is large.
    """

    bits: int

    @property
    def words(self) -> str:
        """Description of the expected value."""
        return f"a whole number from 0 to 2^{self.bits} - 1, written in JSON as a string of decimal digits"

    @property
    def example(self) -> str:
        """Example of a valid value."""
        return "'1234'"

    def read(self, data: object) -> int:
        """Read decimal digits without sign or leading zeros."""
        if not isinstance(data, str) or not _DECIMAL.fullmatch(data):
            fix = f"Write it in quotes, for example {self.example}"
            raise FieldError(f"must be {self.words}, got {shown(data)}", fix=fix)
        return self.check(int(data))

    def check(self, value: object) -> int:
        """Return a Python integer in range; numpy integers are converted."""
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise FieldError(f"must be {self.words}, got {shown(value)}", fix="Pass an integer")
        number = int(value)
        if not 0 <= number < 2**self.bits:
            raise FieldError(f"must be {self.words}, got {shown(number)}", fix=f"Take it modulo 2^{self.bits}")
        return number

    def write(self, value: int) -> str:
        """Return decimal digits."""
        return str(value)


_DECIMAL = re.compile(r"0|[1-9][0-9]{0,38}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")
_LONGEST_NAME = 200


def _is_text(text: str) -> bool:
    """Return whether the text can be encoded: JSON may hold half a surrogate pair."""
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


ANY_TEXT = Text("a string", "'some text'", _is_text)
NAME = Text(f"a name of 1 to {_LONGEST_NAME} printable characters, on one line", "'raspberry-pi-4'", _is_name)

Name = Annotated[str, NAME]
"""Human-readable text: a device's name, an engine, a source of measurements."""

Identifier = Annotated[
    str,
    Text(
        "an identifier of 1 to 128 letters, digits and . _ : - that starts with a letter or a digit",
        "'task-7'",
        lambda text: _IDENTIFIER.fullmatch(text) is not None,
    ),
]
"""An identifier for use in URLs: it has no character that needs escaping there."""

Digest = Annotated[
    str,
    Text(
        "a digest: 'sha256:' and 64 lower-case hexadecimal digits",
        "'sha256:" + "0123456789abcdef" * 4 + "'",
        lambda text: _DIGEST.fullmatch(text) is not None,
    ),
]
"""The SHA-256 of some content."""

Timestamp = Annotated[
    str,
    Text("a time in UTC, in ISO 8601 ending in Z", "'2026-01-31T12:00:00Z'", _is_timestamp),
]
"""A time, always in UTC, because the devices of a fleet are in many time zones."""

Seed = Annotated[int, UnsignedText(64)]
"""An unsigned 64-bit number; in JSON a string of decimal digits."""


def digest_of(content: bytes) -> str:
    """Return the digest of some bytes, in the format of `Digest` fields."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def check_digest(text: str) -> str:
    """Return the text if it is a digest, else raise `SchemaError`. For digests outside documents, as in a URL."""
    if not isinstance(text, str) or not _DIGEST.fullmatch(text):
        raise SchemaError(
            f"{shown(text)} is not a digest",
            fix="A digest is 'sha256:' and 64 lower-case hexadecimal digits",
        )
    return text


def timestamp_of(moment: datetime) -> str:
    """Return a moment as a `Timestamp`, in whole seconds: `timestamp_of(datetime.now(UTC))`."""
    if moment.tzinfo is None:
        raise SchemaError(f"the moment {moment.isoformat()} has no time zone", fix="Take it from datetime.now(UTC)")
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"
