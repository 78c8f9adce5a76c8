"""Field types that contain others: optional values, lists and mappings.

`edgefl.values.dataclass_fields` builds them from type hints. The path of an error includes the item's position.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from edgefl.values.field_error import FieldError, shown
from edgefl.values.field_types import FieldType
from edgefl.values.frozen_mapping import FrozenMapping
from edgefl.values.strings import NAME

__all__ = ["OptionalType", "ListType", "MapType"]


@dataclass(frozen=True, slots=True)
class OptionalType:
    """`X | None`; in JSON, null stands for None."""

    inner: FieldType

    @property
    def words(self) -> str:
        """Description of the expected value."""
        return f"{self.inner.words}, or null"

    @property
    def example(self) -> str:
        """Example of a valid value."""
        return f"{self.inner.example}, or null"

    def read(self, data: object) -> Any:
        """Read null, or the inner type."""
        return None if data is None else self.inner.read(data)

    def check(self, value: object) -> Any:
        """Check for None, or the inner type."""
        return None if value is None else self.inner.check(value)

    def write(self, value: Any) -> Any:
        """Return null, or the inner type's JSON."""
        return None if value is None else self.inner.write(value)


@dataclass(frozen=True, slots=True)
class ListType:
    """`tuple[X, ...]`; in JSON, a list."""

    item: FieldType

    @property
    def words(self) -> str:
        """Description of the expected value."""
        return f"a list, each item {self.item.words}"

    @property
    def example(self) -> str:
        """Example of a valid value."""
        return f"[{self.item.example}]"

    def read(self, data: object) -> tuple[Any, ...]:
        """Read a list."""
        return self._each(data, self.item.read)

    def check(self, value: object) -> tuple[Any, ...]:
        """Return a tuple; a list is converted, so that the value cannot change afterwards."""
        return self._each(value, self.item.check)

    def write(self, value: tuple[Any, ...]) -> list[Any]:
        """Return a list."""
        return [self.item.write(item) for item in value]

    def _each(self, items: object, take: Callable[[object], Any]) -> tuple[Any, ...]:
        if not isinstance(items, list | tuple):
            raise FieldError(f"must be {self.words}; got {shown(items)}", fix=f"Write for example {self.example}")
        taken = []
        for index, item in enumerate(items):
            try:
                taken.append(take(item))
            except FieldError as error:
                raise error.under(index) from None
        return tuple(taken)


@dataclass(frozen=True, slots=True)
class MapType:
    """`Mapping[str, X]`; in JSON, an object with free keys, which are written in sorted order."""

    item: FieldType

    @property
    def words(self) -> str:
        """Description of the expected value."""
        return f"an object, each value {self.item.words}"

    @property
    def example(self) -> str:
        """Example of a valid value."""
        return f"{{'name': {self.item.example}}}"

    def read(self, data: object) -> FrozenMapping[Any]:
        """Read an object."""
        return self._each(data, self.item.read)

    def check(self, value: object) -> FrozenMapping[Any]:
        """Return an immutable copy of a mapping."""
        return self._each(value, self.item.check)

    def write(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return an object with sorted keys."""
        return {key: self.item.write(value[key]) for key in sorted(value)}

    def _each(self, items: object, take: Callable[[object], Any]) -> FrozenMapping[Any]:
        if not isinstance(items, Mapping):
            raise FieldError(f"must be {self.words}; got {shown(items)}", fix=f"Write for example {self.example}")
        taken = {}
        for key, item in items.items():
            try:
                NAME.check(key)
            except FieldError as error:
                raise FieldError(f"has the key {shown(key)}; a key {error.says}", fix=error.fix) from None
            try:
                taken[key] = take(item)
            except FieldError as error:
                raise error.under(key) from None
        return FrozenMapping(taken)
