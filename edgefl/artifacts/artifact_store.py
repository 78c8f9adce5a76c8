"""Content-addressed files, and results stored by the inputs they were made from.

The coordinator cuts the graph of a mask once and serves it by digest; a device keeps what it downloaded. A file is
written atomically, and returned only if it still matches its digest: a damaged one counts as missing.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from edgefl.errors import SchemaError
from edgefl.values import Digest, check_digest, digest_of

__all__ = ["ArtifactStore", "flush", "write_atomically"]


def _umask() -> int:
    """Return the umask for new files, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


_UMASK = _umask()


class ArtifactStore:
    """A folder of content-addressed files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, data: bytes) -> Digest:
        """Store data, and return its digest."""
        digest = digest_of(data)
        path = self.path_of(digest)
        if not path.exists():
            write_atomically(path, data)
        return digest

    def adopt(self, file: Path, digest: Digest) -> None:
        """Move an existing file, whose content has this digest, into the store."""
        path = self.path_of(check_digest(digest))
        path.parent.mkdir(parents=True, exist_ok=True)
        file.replace(path)
        flush(path.parent)

    def get(self, digest: Digest) -> bytes | None:
        """Return the content of a digest, or None. A damaged file is removed."""
        path = self.path_of(check_digest(digest))
        with contextlib.suppress(FileNotFoundError):
            data = path.read_bytes()
            if digest_of(data) == digest:
                return data
            path.unlink(missing_ok=True)
        return None

    def made_from(self, *sources: str, make: Callable[[], bytes]) -> bytes:
        """Return what was made from these sources (digests and settings) before, or make and store it now."""
        recipe = digest_of("\0".join(sources).encode())
        note = self.folder / "made" / recipe.removeprefix("sha256:")
        with contextlib.suppress(OSError, ValueError, SchemaError):
            known = self.get(note.read_text())
            if known is not None:
                return known
        data = make()
        write_atomically(note, self.put(data).encode())
        return data

    def files(self) -> list[Path]:
        """Return the files of everything in the store."""
        return [path for path in (self.folder / "content").glob("??/*") if not path.name.startswith(".")]

    def path_of(self, digest: Digest) -> Path:
        """Return the path of this digest's content, whether it exists or not."""
        name = digest.removeprefix("sha256:")
        return self.folder / "content" / name[:2] / name


def write_atomically(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Write a file atomically, even if the power fails. The umask applies to its mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), mode & ~_UMASK)  # a temporary file is private to its owner
        Path(temporary).replace(path)
        flush(path.parent)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def flush(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
