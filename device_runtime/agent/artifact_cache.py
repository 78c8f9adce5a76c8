"""Downloaded artifacts by digest, with a size limit and resumable downloads.

    content/ab/abcd...   complete artifacts; the least recently used are removed first
    parts/abcd...        incomplete downloads

An artifact is checked against its digest before it gets its name, and again whenever it is read, so a damaged file is
never used: it is removed and downloaded again.
"""

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from device_runtime.agent.client import RejectedError
from device_runtime.agent.transport import GarbledError, UnreachableError
from edgefl.artifacts.artifact_store import ArtifactStore, flush
from edgefl.errors import EdgeFLError
from edgefl.values import digest_of

__all__ = ["ArtifactCache", "DamagedError", "Fetch"]

_STALE_SECONDS = 86_400
_AGAIN = "It will be downloaded again."

Fetch = Callable[[str, Callable[[int, bytes], None], int], int]
"""(digest, sink, first byte) -> status of the reply: 206 if it begins at that byte, 200 if at the beginning."""


class DamagedError(UnreachableError):
    """A download does not match its digest."""


class ArtifactCache:
    """A folder of artifacts."""

    def __init__(self, folder: Path, *, most_bytes: int = 2 * 2**30) -> None:
        self._store = ArtifactStore(folder)
        self._parts = folder / "parts"
        self._most_bytes = most_bytes
        self._sweep(folder)

    def get(self, digest: str, fetch: Fetch) -> bytes:
        """Return an artifact from the cache, or fetch what is missing of it."""
        known = self._store.get(digest)
        if known is not None:
            with contextlib.suppress(OSError):
                os.utime(self._store.path_of(digest))
            return known
        part = self._part(digest)
        part.parent.mkdir(parents=True, exist_ok=True)
        data = self._complete(digest, part)  # the download may have been complete when the power failed
        if data is None:
            self._download(digest, fetch, part)
            data = self._complete(digest, part)
        if data is None:
            part.unlink()
            raise _damaged(digest)
        flush(part)
        self._make_room(len(data))
        self._store.adopt(part, digest)
        return data

    def _complete(self, digest: str, part: Path) -> bytes | None:
        """Return what has arrived of an artifact if it is complete and matches its digest."""
        data = part.read_bytes() if part.exists() else b""
        return data if digest_of(data) == digest else None

    def _download(self, digest: str, fetch: Fetch, part: Path) -> None:
        """Fetch what is missing of an artifact into its partial file."""
        start = part.stat().st_size if part.exists() else 0
        with part.open("ab") as file:

            def sink(status: int, piece: bytes) -> None:
                nonlocal start
                if status == 200 and start:  # the coordinator starts from the beginning
                    file.truncate(0)
                    start = 0
                if file.tell() + len(piece) > self._most_bytes:
                    raise EdgeFLError(
                        f"the artifact {digest} is larger than {self._most_bytes:,} bytes",
                        fix="Allow more for the cache of this device.",
                    )
                file.write(piece)

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

    def _sweep(self, folder: Path) -> None:
        """Remove what a killed process left: files that were being written, and stale partial downloads."""
        stale = time.time() - _STALE_SECONDS
        for path in [*folder.rglob(".writing-*"), *self._parts.glob("*")]:
            with contextlib.suppress(OSError):
                if path.name.startswith(".writing-") or path.stat().st_mtime < stale:
                    path.unlink()

    def _make_room(self, needed: int) -> None:
        """Remove the least recently used artifacts until there is room."""
        files = sorted(self._store.files(), key=lambda path: path.stat().st_mtime)
        total = needed + sum(path.stat().st_size for path in files)
        for path in files:
            if total <= self._most_bytes:
                return
            total -= path.stat().st_size
            path.unlink(missing_ok=True)

    def _part(self, digest: str) -> Path:
        return self._parts / digest.removeprefix("sha256:")


def _damaged(digest: str) -> DamagedError:
    return DamagedError(f"the artifact {digest} arrived damaged", fix=_AGAIN)
