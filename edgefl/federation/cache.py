"""A least-recently-used cache that makes what it lacks. Safe to use from several threads."""

import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache

__all__ = ["LruCache"]

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def _one(value: object) -> int:
    return 1


class LruCache(Generic[Key, Value]):
    """Keeps the values that were used last: up to a number of them, or with `size_of` up to a total size."""

    def __init__(self, capacity: int, size_of: Callable[[Value], int] = _one) -> None:
        self._values: LRUCache[Key, Value] = LRUCache(capacity, getsizeof=size_of)
        self._lock = threading.Lock()

    def find(self, key: Key) -> Value | None:
        """Return the value of a key, or None if it is missing."""
        with self._lock:
            value: Value | None = self._values.get(key)
            return value

    def get(self, key: Key, make: Callable[[], Value]) -> Value:
        """Return the value of a key, making it if it is missing. A value of None is returned but not kept."""
        with self._lock:
            if key in self._values:
                return self._values[key]
        made = make()  # outside the lock: it may take seconds, and making it twice does no harm
        if made is not None and self._values.getsizeof(made) <= self._values.maxsize:
            with self._lock:
                self._values[key] = made
        return made
