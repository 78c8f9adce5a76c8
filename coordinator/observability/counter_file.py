"""A file of named numbers that one process changes and others read at any time: memory-mapped, of a fixed size.

    8 bytes                       where the last entry ends
    for each entry: 4 bytes       the length of its name
                    its name      UTF-8, padded so that the number is aligned
                    8 bytes       its value

An entry is complete before the end is moved behind it, and a value is written by one aligned copy, so a reader sees a
number that was there at some time, and a process that is killed has counted to its last instruction.
"""

import mmap
import os
import struct
import threading
from pathlib import Path

__all__ = ["CounterFile", "read_counters"]

_END, _LENGTH, _VALUE = struct.Struct("<q"), struct.Struct("<i"), struct.Struct("<d")


class CounterFile:
    """The numbers of this process."""

    def __init__(self, path: Path, size: int) -> None:
        self._lock = threading.Lock()
        self._places: dict[str, int] = {}
        self._end, self._size = _END.size, size
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            # Now, as a write to a page for which the disk has no room would kill the process.
            os.posix_fallocate(descriptor, 0, size)
            self._map = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
        self._map[: _END.size] = _END.pack(self._end)

    def place(self, name: str) -> int | None:
        """Return where a number is, which begins as 0; None if the file has no room for another one."""
        with self._lock:
            known = self._places.get(name)
            if known is not None:
                return known
            encoded = name.encode()
            padding = -(_LENGTH.size + len(encoded)) % _VALUE.size
            entry = _LENGTH.pack(len(encoded)) + encoded + b" " * padding + _VALUE.pack(0.0)
            end = self._end + len(entry)
            if end > self._size:
                return None
            self._map[self._end : end] = entry
            self._map[: _END.size] = _END.pack(end)
            self._end = end
            self._places[name] = end - _VALUE.size
            return end - _VALUE.size

    def add(self, place: int | None, amount: float) -> None:
        """Add to a number."""
        if place is not None:
            with self._lock:
                (before,) = _VALUE.unpack_from(self._map, place)
                self._map[place : place + _VALUE.size] = _VALUE.pack(before + amount)

    def set(self, place: int | None, value: float) -> None:
        """Set a number."""
        if place is not None:
            self._map[place : place + _VALUE.size] = _VALUE.pack(value)


def read_counters(path: Path) -> dict[str, float]:
    """Return the numbers of a file by name."""
    data = path.read_bytes()
    (end,), at = _END.unpack_from(data) if len(data) >= _END.size else (0,), _END.size
    found = {}
    while at < min(end, len(data)):
        (length,) = _LENGTH.unpack_from(data, at)
        value_at = at + _LENGTH.size + length
        value_at += -value_at % _VALUE.size
        found[data[at + _LENGTH.size : at + _LENGTH.size + length].decode()] = _VALUE.unpack_from(data, value_at)[0]
        at = value_at + _VALUE.size
    return found
