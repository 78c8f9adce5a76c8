"""The last few things that were asked for, by name."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["LruCache"]

Name = TypeVar("Name", bound=Hashable)
Thing = TypeVar("Thing")


class LruCache(Generic[Name, Thing]):
    """Makes things, and keeps those that were asked for last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._things: OrderedDict[Name, Thing] = OrderedDict()

    def get(self, name: Name, make: Callable[[], Thing]) -> Thing:
        """Return a thing, made if it is not there."""
        if name not in self._things:
            self._things[name] = make()
        self._things.move_to_end(name)
        if len(self._things) > self._most:
            self._things.popitem(last=False)
        return self._things[name]
