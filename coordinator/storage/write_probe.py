"""Tries whether files can still be written: a full disk, a read-only one, a file that was deleted while it is open.

A process that has a deleted file open can write to it for ever without noticing, so the file at the path is compared
with the one that was opened.
"""

import os
import uuid
from dataclasses import dataclass
from pathlib import Path

__all__ = ["OpenedFile", "try_write"]

_BYTES = 64 * 1024
"""What a small update needs. A database can reuse its own space, so a write to it alone would not show a full disk."""


def try_write(folder: Path) -> None:
    """Write a new file to the disk and delete it. Raise `OSError` if that fails."""
    path = folder / f".probe-{uuid.uuid4().hex}"
    try:
        with path.open("xb") as file:
            file.write(bytes(_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file that is open, and what identified it when it was opened."""

    path: Path
    identity: tuple[int, int]

    @classmethod
    def at(cls, path: Path) -> "OpenedFile":
        """Note the file that is at a path now."""
        return cls(path, _identity(path))

    def check(self) -> None:
        """Raise `OSError` if the file was deleted or replaced."""
        if _identity(self.path) != self.identity:
            raise FileNotFoundError(f"{self.path} was replaced while it was open")


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino
