"""Downloaded artifacts by digest, with a size limit and resumable downloads.

    content/ab/abcd...   complete artifacts; the least recently used are removed first
    parts/abcd...        incomplete downloads

An artifact is checked against its digest before it gets its name, and again whenever it is read, so a damaged file is
never used: it is removed and downloaded again. What is complete and what is not stay below the size limit together,
and a part of the disk stays free, whatever is sent. Artifacts go from the network to the disk in pieces.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import BinaryIO

from device_runtime.agent.client import RejectedError
from device_runtime.agent.transport import GarbledError, UnreachableError
from device_runtime.refusal import RefusalError
from edgefl.artifacts.artifact_store import PRIVATE, ArtifactStore, flush, make_folder
from edgefl.errors import EdgeFLError
from edgefl.values import Reason, check_digest

__all__ = ["ArtifactCache", "DamagedError", "Fetch"]

_STALE_SECONDS = 86_400
_AGAIN = "It will be downloaded again."
_PIECE = 2**20
_MOST_FREE = 256 * 2**20
_FREE_SHARE = 0.05
"""Downloads leave this share of the disk free, or `_MOST_FREE` bytes of a large one."""

Fetch = Callable[[str, Callable[[int, bytes], None], int], int]
"""(digest, sink, first byte) -> status of the reply: 206 if it begins at that byte, 200 if at the beginning."""


class DamagedError(UnreachableError):
    """A download does not match its digest."""


class ArtifactCache:
    """A folder of artifacts."""

    def __init__(self, folder: Path, *, most_bytes: int = 2 * 2**30) -> None:
        self._store = ArtifactStore(folder, mode=PRIVATE)
        self._parts = folder / "parts"
        self._most_bytes = most_bytes
        self._needed: frozenset[str] = frozenset()
        self._held = 0
        """Bytes of everything but the artifact that is being downloaded."""
        self._sweep(folder)

    @property
    def folder(self) -> Path:
        """The folder of the artifacts, for an `ArtifactStore` in another process."""
        return self._store.folder

    def need(self, digests: Collection[str], *, keep_parts: bool = False) -> None:
        """Keep these artifacts until others are needed; give up incomplete downloads of any others.

        `keep_parts` keeps those, too, while it is not known yet what else is needed.
        """
        self._needed = frozenset(check_digest(digest) for digest in digests)
        if keep_parts:
            return
        for part in self._parts.glob("*"):
            if f"sha256:{part.name}" not in self._needed:
                part.unlink(missing_ok=True)

    def get(self, digest: str, fetch: Fetch) -> bytes:
        """Return an artifact from the cache, or fetch what is missing of it."""
        self.download(digest, fetch)
        data = self._store.get(digest)
        if data is None:
            raise _damaged(digest)
        return data

    def download(self, digest: str, fetch: Fetch) -> None:
        """Fetch what is missing of an artifact."""
        path = self._store.path_of(check_digest(digest))
        if _matches(path, digest):
            with contextlib.suppress(OSError):
                os.utime(path)
            return
        path.unlink(missing_ok=True)
        part = self._parts / digest.removeprefix("sha256:")
        make_folder(part.parent, mode=PRIVATE)
        if not _matches(part, digest):  # the download may have been complete when the power failed
            self._fetch(digest, fetch, part)
        if not _matches(part, digest):
            part.unlink()
            raise _damaged(digest)
        flush(part)
        self._store.adopt(part, digest)

    def _fetch(self, digest: str, fetch: Fetch, part: Path) -> None:
        """Fetch what is missing of an artifact into its partial file."""
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, PRIVATE), "ab") as file:
            start = file.tell()
            others = [path for path in self._parts.glob("*") if path != part]
            self._held = _bytes_of([*self._store.files(), *others])
            needed = [self._store.path_of(name) for name in self._needed]
            room, spare = self._most_bytes - _bytes_of([*needed, *others]), self._spare(start)

            def sink(status: int, piece: bytes) -> None:
                nonlocal start
                if status == 200 and start:  # the coordinator starts from the beginning
                    file.truncate(0)
                    start = 0
                self._write(file, piece, room, spare)

            try:
                fetch(digest, sink, start)
            except GarbledError:
                part.unlink()
                raise _damaged(digest) from None
            except UnreachableError:
                raise  # keep the partial file: the next try resumes after it
            except RejectedError:
                part.unlink()
                if not start:
                    raise
                # There is nothing left to fetch, yet the digest does not match: the file was damaged on this disk.
                raise DamagedError(f"the partial download of {digest} is damaged", fix=_AGAIN) from None
            except (OSError, EdgeFLError):
                part.unlink()  # free the space on a full disk
                raise

    def _write(self, file: BinaryIO, piece: bytes, room: int, spare: int) -> None:
        """Add a piece to a partial file, unless that would take more than it may."""
        size = file.tell() + len(piece)
        if size > room:
            raise RefusalError(
                Reason.STORAGE,
                f"what the task names is larger than {self._most_bytes:,} bytes",
                fix="Allow more for the cache of this device.",
            )
        if size > spare:
            raise OSError(errno.ENOSPC, "the disk is nearly full")
        if self._held + size > self._most_bytes:
            self._make_room(size)
        file.write(piece)

    def _spare(self, start: int) -> int:
        """Return the bytes that a partial file may have for a part of the disk to stay free."""
        disk = shutil.disk_usage(self._parts)
        return start + disk.free - min(_MOST_FREE, int(_FREE_SHARE * disk.total))

    def _make_room(self, growing: int) -> None:
        """Remove the least recently used artifacts until there is room for what is being downloaded."""
        for path in sorted(self._store.files(), key=lambda path: path.stat().st_mtime):
            if self._held + growing <= self._most_bytes:
                return
            if f"sha256:{path.name}" not in self._needed:
                self._held -= path.stat().st_size
                path.unlink(missing_ok=True)

    def _sweep(self, folder: Path) -> None:
        """Remove what a killed process left: files that were being written, and stale partial downloads."""
        stale = time.time() - _STALE_SECONDS
        for path in [*folder.rglob(".writing-*"), *self._parts.glob("*")]:
            with contextlib.suppress(OSError):
                if path.name.startswith(".writing-") or path.stat().st_mtime < stale:
                    path.unlink()


def _matches(path: Path, digest: str) -> bool:
    """Return whether a file exists and has a digest."""
    hasher = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                hasher.update(piece)
    except FileNotFoundError:
        return False
    return f"sha256:{hasher.hexdigest()}" == digest


def _bytes_of(paths: list[Path]) -> int:
    return sum(path.stat().st_size for path in paths if path.exists())


def _damaged(digest: str) -> DamagedError:
    return DamagedError(f"the artifact {digest} arrived damaged", fix=_AGAIN)
