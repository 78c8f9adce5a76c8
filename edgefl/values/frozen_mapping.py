"""Immutable mapping for the fields of frozen values.

`types.MappingProxyType` would be the obvious choice, but it can be neither pickled nor hashed, and values are sent
between processes.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

__all__ = ["FrozenMapping"]

V = TypeVar("V")


class FrozenMapping(Mapping[str, V]):
    """An immutable, hashable mapping with string keys in sorted order. Equal to any equal mapping."""

    __slots__ = ("_items",)
    _items: dict[str, V]

    def __init__(self, items: Mapping[str, V]) -> None:
        object.__setattr__(self, "_items", {key: items[key] for key in sorted(items)})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot change")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot change")

    def __getitem__(self, key: str) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(tuple(self._items.items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._items!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (dict(self._items),))
