"""What happens to the files of some folders, told by the kernel as it happens (inotify, Linux).

A client writes a checkpoint in a millisecond or two: who looks at the folder from time to time misses it.
"""

import ctypes
import os
import select
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from types import TracebackType

__all__ = ["CREATED", "DELETED", "RENAMED", "WRITTEN", "FileEvent", "FolderEvents"]

CREATED, DELETED, RENAMED, WRITTEN = 0x100, 0x200, 0x80, 0x2
"""IN_CREATE, IN_DELETE, IN_MOVED_TO, IN_MODIFY of <sys/inotify.h>."""
_ALL = CREATED | DELETED | RENAMED | WRITTEN
_HEADER = struct.Struct("iIII")


@dataclass(frozen=True, slots=True)
class FileEvent:
    """A file of a watched folder was created, deleted or written to, or took its name from another one."""

    kind: int
    name: str
    """The folder's own name and the file's, such as 'task/plan.json'."""


class FolderEvents:
    """Watches folders, which must exist, from now on."""

    def __init__(self, folders: Sequence[Path]) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._file = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), "inotify is not available")
        watch = library.inotify_add_watch
        self._names = {watch(self._file, os.fsencode(folder), _ALL): folder.name for folder in folders}
        if min(self._names) < 0:
            self.close()
            raise OSError(ctypes.get_errno(), "a folder cannot be watched")

    def within(self, seconds: float) -> list[FileEvent]:
        """Return what has happened, after `seconds` at the latest; an empty list if nothing has."""
        ready, _, _ = select.select([self._file], [], [], max(seconds, 0))
        return self._parsed(os.read(self._file, 65536)) if ready else []

    def has(self, kind: int, pattern: str, seconds: float) -> bool:
        """Return whether a file whose name has this pattern had such an event, after `seconds` at the latest."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if any(event.kind == kind and fnmatch(event.name, pattern) for event in self.within(left)):
                return True
        return False

    def _parsed(self, raw: bytes) -> list[FileEvent]:
        found, at = [], 0
        while at < len(raw):
            folder, kind, _, length = _HEADER.unpack_from(raw, at)
            at += _HEADER.size
            name = raw[at : at + length].rstrip(b"\0").decode()
            found.append(FileEvent(kind & _ALL, f"{self._names.get(folder, '')}/{name}"))
            at += length
        return found

    def close(self) -> None:
        os.close(self._file)

    def __enter__(self) -> "FolderEvents":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
