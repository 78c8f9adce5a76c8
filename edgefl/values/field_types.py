"""Shapes: how one kind of field is read from JSON, checked in Python, and written to JSON.

`edgefl.values.dataclass_fields` picks the shape of a field by its type hint. Here are the plain ones; `containers` has
those that hold others. Quantities and texts are shapes too, and another room can add its own: any object with
these members, put into `Annotated[X, shape]`.
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
        """What the field is, as in "field 'x' is ..."."""

    @property
    def example(self) -> str:
        """What to write, as in "Write for example ..."."""

    def read(self, data: object) -> Any:
        """The value from its JSON form, or a `FieldError`."""

    def check(self, value: object) -> Any:
        """The value itself, made immutable where needed, or a `FieldError`."""

    def write(self, value: Any) -> Any:
        """The JSON form of a value that was checked."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A `bool`. Neither 1 nor 'yes' is one."""

    words: str = "true or false"
    example: str = "true"

    def read(self, data: object) -> bool:
        """From JSON: true or false."""
        return self.check(data)

    def check(self, value: object) -> bool:
        """A Python boolean."""
        if not isinstance(value, bool):
            raise FieldError(f"is {self.words}, got {shown(value)}", fix="Write true or false, without quotes")
        return value

    def write(self, value: bool) -> bool:
        """To JSON: true or false."""
        return value


@dataclass(frozen=True, slots=True)
class Choice:
    """A member of a `StrEnum`; in JSON, its text."""

    choices: type[StrEnum]

    @property
    def words(self) -> str:
        """What the field is."""
        return "one of " + ", ".join(repr(str(choice)) for choice in self.choices)

    @property
    def example(self) -> str:
        """What to write."""
        return repr(str(next(iter(self.choices))))

    def read(self, data: object) -> StrEnum:
        """From JSON: the text of a member."""
        if isinstance(data, str):
            for choice in self.choices:
                if choice.value == data:
                    return choice
        raise FieldError(f"is {self.words}, got {shown(data)}", fix=self._advice(data))

    def check(self, value: object) -> StrEnum:
        """A member. Its bare text is taken too, since it compares equal to the member."""
        return value if isinstance(value, self.choices) else self.read(value)

    def write(self, value: StrEnum) -> str:
        """To JSON: the text of the member."""
        return value.value

    def _advice(self, data: object) -> str:
        texts = [choice.value for choice in self.choices]
        near = difflib.get_close_matches(data.lower()[:100], texts, n=1) if isinstance(data, str) else []
        return f"Did you mean {near[0]!r}?" if near else f"Write for example {self.example}"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A setting: `bool | int | float | str`, or fewer of these. It keeps the type it was written in."""

    allowed: tuple[type, ...]

    @property
    def words(self) -> str:
        """What the field is."""
        names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
        return ", ".join(names[kind] for kind in self.allowed)

    @property
    def example(self) -> str:
        """What to write."""
        examples = {bool: "true", int: "1", float: "0.1", str: "'a text'"}
        return examples[self.allowed[-1]]

    def read(self, data: object) -> bool | int | float | str:
        """From JSON: the same scalar."""
        return self.check(data)

    def check(self, value: object) -> bool | int | float | str:
        """A scalar of an allowed type; a number is finite, and exact in every JSON reader."""
        if isinstance(value, bool) and bool in self.allowed:
            return value
        if isinstance(value, str) and str in self.allowed:
            return ANY_TEXT.check(value)
        number = isinstance(value, numbers.Real) and not isinstance(value, bool)
        if number and isinstance(value, numbers.Integral) and int in self.allowed:
            return WHOLE.check(value)
        if number and float in self.allowed:
            return REAL.check(value)
        raise FieldError(f"is one of: {self.words}; got {shown(value)}", fix=f"Write for example {self.example}")

    def write(self, value: bool | int | float | str) -> bool | int | float | str:
        """To JSON: the same scalar."""
        return value
