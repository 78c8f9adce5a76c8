"""Field types: how one kind of field is read from JSON, checked in Python, and written to JSON.

`edgefl.values.dataclass_fields` chooses the type of a field by its hint. The plain types are here, those that contain
others in `containers`. Quantities and strings are field types too, and other packages can add their own: any object
with these members, put into `Annotated[X, field_type]`.
"""

import difflib
import numbers
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from edgefl.values.field_error import FieldError, shown
from edgefl.values.quantities import REAL, WHOLE
from edgefl.values.strings import ANY_TEXT

__all__ = ["FieldType", "Flag", "Choice", "Scalar"]


@runtime_checkable
class FieldType(Protocol):
    """Reads, checks and writes one kind of field."""

    @property
    def words(self) -> str:
        """Description of the expected value, as in "field 'x' must be ..."."""

    @property
    def example(self) -> str:
        """Example of a valid value, as in "Write for example ..."."""

    def read(self, data: object) -> Any:
        """Return the value of a JSON form, or raise `FieldError`."""

    def check(self, value: object) -> Any:
        """Return the value, made immutable if needed, or raise `FieldError`."""

    def write(self, value: Any) -> Any:
        """Return the JSON form of a checked value."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A `bool`. Neither 1 nor 'yes' is one."""

    words: str = "true or false"
    example: str = "true"

    def read(self, data: object) -> bool:
        """Read true or false."""
        return self.check(data)

    def check(self, value: object) -> bool:
        """Check for a Python boolean."""
        if not isinstance(value, bool):
            raise FieldError(f"must be {self.words}, got {shown(value)}", fix="Write true or false, without quotes")
        return value

    def write(self, value: bool) -> bool:
        """Return true or false."""
        return value


@dataclass(frozen=True, slots=True)
class Choice:
    """A member of a `StrEnum`; in JSON, its text."""

    choices: type[StrEnum]

    @property
    def words(self) -> str:
        """Description of the expected value."""
        return "one of " + ", ".join(repr(str(choice)) for choice in self.choices)

    @property
    def example(self) -> str:
        """Example of a valid value."""
        return repr(str(next(iter(self.choices))))

    def read(self, data: object) -> StrEnum:
        """Read the text of a member."""
        if isinstance(data, str):
            for choice in self.choices:
                if choice.value == data:
                    return choice
        raise FieldError(f"must be {self.words}, got {shown(data)}", fix=self._advice(data))

    def check(self, value: object) -> StrEnum:
        """Return the member. Its bare text is accepted too, since it compares equal."""
        return value if isinstance(value, self.choices) else self.read(value)

    def write(self, value: StrEnum) -> str:
        """Return the text of the member."""
        return value.value

    def _advice(self, data: object) -> str:
        texts = [choice.value for choice in self.choices]
        near = difflib.get_close_matches(data.lower()[:100], texts, n=1) if isinstance(data, str) else []
        return f"Did you mean {near[0]!r}?" if near else f"Write for example {self.example}"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A setting: `bool | int | float | str`, or some of these. It keeps the type it was written in."""

    allowed: tuple[type, ...]

    @property
    def words(self) -> str:
        """Description of the expected value."""
        names = {bool: "true or false", int: "a whole number", float: "a number", str: "a string"}
        return ", ".join(names[kind] for kind in self.allowed)

    @property
    def example(self) -> str:
        """Example of a valid value."""
        examples = {bool: "true", int: "1", float: "0.1", str: "'a text'"}
        return examples[self.allowed[-1]]

    def read(self, data: object) -> bool | int | float | str:
        """Read a scalar."""
        return self.check(data)

    def check(self, value: object) -> bool | int | float | str:
        """Check for an allowed type; numbers must be finite and exact in every JSON reader."""
        if isinstance(value, bool) and bool in self.allowed:
            return value
        if isinstance(value, str) and str in self.allowed:
            return ANY_TEXT.check(value)
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if number and isinstance(value, numbers.Integral) and int in self.allowed:
            return WHOLE.check(value)
        if number and float in self.allowed:
            return REAL.check(value)
        raise FieldError(f"must be one of: {self.words}; got {shown(value)}", fix=f"Write for example {self.example}")

    def write(self, value: bool | int | float | str) -> bool | int | float | str:
        """Return the scalar."""
        return value
