"""The blob store in a folder.

    content/abcdef...    bodies, each named by the digits of its digest
    small.sqlite         bodies of up to 256 KiB, together
    spool/               incoming bodies

There is one folder, not one for each pair of digits, so that a batch of updates waits for the flush of one folder.
Current file systems find a name among a million as fast as among a hundred.

A body is written to the spool, flushed to the disk and then renamed, so the file of a digest is complete or missing.
The names are on the disk too before a put returns. Several processes may share a folder.
"""

import contextlib
import mmap
import os
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coordinator.storage.blobs import Spooled, missing
from coordinator.storage.private_files import create_private
from coordinator.storage.small_blobs import SmallBodies
from coordinator.storage.write_probe import try_write
from edgefl.artifacts.artifact_store import flush
from edgefl.values import check_digest, digest_of

__all__ = ["FolderBlobs"]

_PIECE = 256 * 1024
_STALE_SECONDS = 3600.0
_THREADS = 4
_SMALL = 256 * 1024
"""Bytes. Above this, a separate file costs less than a copy through a database."""


class FolderBlobs:
    """Content-addressed files."""

    def __init__(self, folder: Path) -> None:
        self._content = folder / "content"
        self._spool = folder / "spool"
        for place in (folder, self._content, self._spool):  # only the coordinator may read what devices sent
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_private(folder / "small.sqlite")
        self._small = SmallBodies(folder / "small.sqlite")
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="blobs")
        self._clear_spool()

    def put(self, data: bytes) -> str:
        """Store data and return its digest."""
        return self.put_all([data])[0]

    def put_all(self, bodies: Sequence[bytes | Spooled]) -> list[str]:
        """Store several bodies. Several threads wait for the disk, and the folder is flushed once."""
        digests: dict[int, str] = {}
        small: dict[str, bytes] = {}
        large: dict[int, bytes | Spooled] = {}
        for number, body in enumerate(bodies):
            if isinstance(body, bytes) and len(body) <= _SMALL:
                digests[number] = digest_of(body)
                small[_digits(digests[number])] = body
            else:
                large[number] = body
        self._small.put_all(small)
        digests.update(zip(large, self._threads.map(self._store, large.values()), strict=True))
        if large:  # also for known ones: the worker that wrote them may not have flushed the folder yet
            flush(self._content)
        return [digests[number] for number in range(len(bodies))]

    def spool(self) -> Path:
        """Return a new path for an incoming body."""
        return self._spool / uuid.uuid4().hex

    def size(self, digest: str) -> int | None:
        """Return how many bytes a body has, or None."""
        small = self._small.size(_digits(digest))
        if small is not None:
            return small
        try:
            return self._path(digest).stat().st_size
        except FileNotFoundError:
            return None

    def get(self, digest: str) -> bytes:
        """Return the whole body. A damaged one is removed, so that it can be stored again."""
        data = self._small.get(_digits(digest))
        try:
            data = self._path(digest).read_bytes() if data is None else data
        except FileNotFoundError:
            raise missing(digest) from None
        if digest_of(data) != digest:
            self.drop(digest)
            raise missing(digest, damaged=True)
        return data

    @contextlib.contextmanager
    def open(self, digest: str) -> Iterator[memoryview]:
        """Give the whole body, memory-mapped unless it is small."""
        small = self._small.get(_digits(digest))
        if small is not None:
            yield memoryview(small)
            return
        try:
            descriptor = os.open(self._path(digest), os.O_RDONLY)
        except FileNotFoundError:
            raise missing(digest) from None
        try:
            size = os.fstat(descriptor).st_size
            mapped = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) if size else None
        finally:
            os.close(descriptor)
        if mapped is None:  # an empty file cannot be mapped
            yield memoryview(b"")
            return
        try:
            yield memoryview(mapped)
        finally:
            with contextlib.suppress(BufferError):  # an array still uses it, and will release it
                mapped.close()

    def read(self, digest: str, start: int, end: int) -> Iterator[bytes]:
        """Return the bytes from `start` up to `end`, in pieces."""
        small = self._small.get(_digits(digest))
        if small is not None:
            yield small[start:end]
            return
        try:
            file = self._path(digest).open("rb")
        except FileNotFoundError:
            raise missing(digest) from None
        with file:
            file.seek(start)
            while start < end and (piece := file.read(min(_PIECE, end - start))):
                start += len(piece)
                yield piece

    def drop(self, digest: str) -> None:
        """Delete a body."""
        self.drop_all([digest])

    def drop_all(self, digests: Collection[str]) -> None:
        """Delete several bodies."""
        self._small.drop_all([_digits(digest) for digest in digests])
        for digest in digests:
            self._path(digest).unlink(missing_ok=True)

    def check_writable(self) -> None:
        """Write a file to the folder, and to the file of small bodies."""
        for folder in (self._spool, self._content):
            try_write(folder)
        self._small.check_writable()

    def close(self) -> None:
        """Stop the threads and close the files."""
        self._threads.shutdown()
        self._small.close()

    def _path(self, digest: str) -> Path:
        return self._content / _digits(digest)

    def _store(self, body: bytes | Spooled) -> str:
        """Write a body to the file of its digest, without flushing the folder."""
        if isinstance(body, Spooled):
            return self._store_spooled(body)
        digest = digest_of(body)
        if self.size(digest) != len(body):  # another length was left by a failing disk
            path = self.spool()
            try:
                with path.open("xb") as file:
                    file.write(body)
                    file.flush()
                    os.fsync(file.fileno())
                path.replace(self._path(digest))
            except BaseException:
                path.unlink(missing_ok=True)
                raise
        return digest

    def _store_spooled(self, spooled: Spooled) -> str:
        path = spooled.path
        if self.size(spooled.digest) == path.stat().st_size:
            path.unlink()
        else:
            flush(path)
            path.replace(self._path(spooled.digest))
        return spooled.digest

    def _clear_spool(self) -> None:
        """Remove what a crash left behind. Only after an hour, as another worker may be writing now."""
        for path in self._spool.iterdir():
            with contextlib.suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                    path.unlink()


def _digits(digest: str) -> str:
    return check_digest(digest).removeprefix("sha256:")
