"""Files named by what they hold, and results kept by what they were made from.

The coordinator makes the cut graph of a mask once and serves it by digest; a device keeps what it downloaded. A file
is written whole or not at all, and read only if it still matches its digest: a damaged one counts as missing.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from edgefl.errors import SchemaError
from edgefl.values import Digest, check_digest, digest_of

__all__ = ["ArtifactStore", "flush", "write_whole"]


def _umask() -> int:
    """Return the mask for new files, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


_UMASK = _umask()


class ArtifactStore:
    """A folder of content-addressed files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, data: bytes) -> Digest:
        """Keep data, and return its digest."""
        digest = digest_of(data)
        path = self.path_of(digest)
        if not path.exists():
            write_whole(path, data)
        return digest

    def adopt(self, file: Path, digest: Digest) -> None:
        """Move a file here that is on the disk and holds what a digest says."""
        path = self.path_of(check_digest(digest))
        path.parent.mkdir(parents=True, exist_ok=True)
        file.replace(path)
        flush(path.parent)

    def get(self, digest: Digest) -> bytes | None:
        """Return what a digest names, or None. A file that was damaged is removed."""
        path = self.path_of(check_digest(digest))
        with contextlib.suppress(FileNotFoundError):
            data = path.read_bytes()
            if digest_of(data) == digest:
                return data
            path.unlink(missing_ok=True)
        return None

    def made_from(self, *sources: str, make: Callable[[], bytes]) -> bytes:
        """Return what was made from these sources (digests and settings) before, or make and keep it now."""
        recipe = digest_of("\0".join(sources).encode())
        note = self.folder / "made" / recipe.removeprefix("sha256:")
        with contextlib.suppress(OSError, ValueError, SchemaError):
            known = self.get(note.read_text())
            if known is not None:
                return known
        data = make()
        write_whole(note, self.put(data).encode())
        return data

    def files(self) -> list[Path]:
        """Return the files of everything that is kept."""
        return [path for path in (self.folder / "content").glob("??/*") if not path.name.startswith(".")]

    def path_of(self, digest: Digest) -> Path:
        """Return where the content of this digest lies, or would lie."""
        name = digest.removeprefix("sha256:")
        return self.folder / "content" / name[:2] / name


def write_whole(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Write a file so that nobody ever sees half of it, even if the power fails. Its mode is narrowed by the umask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), mode & ~_UMASK)  # a temporary file is for its owner alone
        Path(temporary).replace(path)
        flush(path.parent)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
