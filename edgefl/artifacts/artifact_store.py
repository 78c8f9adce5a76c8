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

__all__ = ["PRIVATE", "ArtifactStore", "flush", "make_folder", "write_atomically"]

PRIVATE = 0o600
"""The mode of a file for its owner alone; the folders made for it are for the owner alone too."""


def _umask() -> int:
    """Return the umask for new files, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


_UMASK = _umask()


class ArtifactStore:
    """A folder of content-addressed files, each with the given mode."""

    def __init__(self, folder: Path, *, mode: int = 0o666) -> None:
        self.folder = folder
        self._mode = mode

    def put(self, data: bytes) -> Digest:
        """Store data, and return its digest."""
        digest = digest_of(data)
        path = self.path_of(digest)
        if not path.exists():
            write_atomically(path, data, mode=self._mode)
        return digest

    def adopt(self, file: Path, digest: Digest) -> None:
        """Move an existing file, whose content has this digest, into the store."""
        path = self.path_of(check_digest(digest))
        make_folder(path.parent, mode=self._mode)
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
        write_atomically(note, self.put(data).encode(), mode=self._mode)
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
    make_folder(path.parent, mode=mode)
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


def make_folder(folder: Path, *, mode: int = 0o666) -> None:
    """Make a folder for files of a mode, and the folders above it.

    Where those files are for their owner alone, so are the new folders, from the moment that they exist.
    """
    if mode & 0o077:
        folder.mkdir(parents=True, exist_ok=True)
        return
    for missing in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def flush(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
