"""Reading of files, gzip files, folders, tars and zips; damaged ones raise `DataError`.

The formats call this. It trusts no header: it reads in pieces up to a limit, so memory use follows the actual bytes,
and it never unpacks to disk.
"""

import errno
import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from edgefl.errors import DataError

__all__ = ["damaged", "reading", "read_file", "read_members", "is_archive"]

# The largest file of any known data set is under 200 MB; a gigabyte is a zip bomb or a mistake.
MOST_BYTES = 1 << 30

_PIECE = 1 << 20

# What the standard library raises for damaged files.
_DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    OverflowError,
    RuntimeError,  # an encrypted zip, and through NotImplementedError an unknown compression
    struct.error,
    zlib.error,
    lzma.LZMAError,
    tarfile.TarError,
    zipfile.BadZipFile,
)


def damaged(file: Path | str, what: str) -> DataError:
    """Return the error for a file that exists but has the wrong content."""
    return DataError(
        f"{file} is damaged or has another format: {what}",
        fix="Download the file again (see `edgefl data list`), or give the right one",
    )


@contextmanager
def reading(file: Path | str) -> Iterator[None]:
    """Turn read and parse errors inside the block into a `DataError` that names the file."""
    try:
        yield
    except _DAMAGE as error:
        # System errors have a number; EINVAL results from an offset in a damaged header.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise DataError(
                f"{file} cannot be read: {error.strerror}", fix="Check the path and its permissions"
            ) from error
        raise damaged(file, (str(error) or type(error).__name__).splitlines()[0].rstrip(":")) from error


def _read_all(stream: IO[bytes] | gzip.GzipFile, file: Path | str) -> bytes:
    pieces: list[bytes] = []
    total = 0
    while piece := stream.read(_PIECE):
        total += len(piece)
        if total > MOST_BYTES:
            raise damaged(file, f"it holds more than {MOST_BYTES:,} bytes")
        pieces.append(piece)
    return b"".join(pieces)


def read_file(path: Path) -> bytes:
    """Return the content of a plain or gzip file, told apart by its first bytes, not its name."""
    with reading(path), path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if not packed:
            return _read_all(raw, path)
        with gzip.GzipFile(fileobj=raw) as unpacked:
            return _read_all(unpacked, path)


def is_archive(path: Path) -> bool:
    """Return whether a path is a file named like a tar or a zip."""
    return path.is_file() and path.name.lower().endswith((".tar.gz", ".tgz", ".tar", ".zip"))


def _wanted(member: str, wanted: Collection[str], exact: bool = False) -> str | None:
    """Return the wanted path that a member's path equals or ends with."""
    if exact:
        return member if member in wanted else None
    parts = PurePosixPath(member).parts
    if "__MACOSX" in parts:
        return None
    return next((name for name in wanted if parts[-len(PurePosixPath(name).parts) :] == tuple(name.split("/"))), None)


Found = dict[str, tuple[str, bytes]]
"""By wanted path: the path of the matching member, and its content."""


def _keep(found: Found, path: Path, name: str, member: str, content: bytes) -> None:
    if name in found:
        raise damaged(path, f"it contains {name} twice, as {found[name][0]} and as {member}")
    found[name] = (member, content)


def _from_tar(path: Path, wanted: Collection[str]) -> Found:
    found: Found = {}
    with tarfile.open(path, "r:*") as tar:
        for member in tar:
            name = _wanted(member.name, wanted) if member.isreg() else None
            stream = tar.extractfile(member) if name is not None else None
            if name is not None and stream is not None:
                _keep(found, path, name, member.name, _read_all(stream, f"{path}:{member.name}"))
    return found


def _from_zip(path: Path, content: IO[bytes], wanted: Collection[str], found: Found, within: str = "") -> Found:
    is_npz = path.suffix.lower() == ".npz"
    with zipfile.ZipFile(content) as archive:
        for member in archive.namelist():
            name = _wanted(member, wanted, exact=is_npz)
            # The UCI archive serves a zip that contains only the old zip.
            inner = not (is_npz or within) and member.lower().endswith(".zip") and "__MACOSX" not in member
            if name is None and not inner:
                continue
            with archive.open(member) as stream:
                data = _read_all(stream, f"{path}:{member}")
            if name is not None:
                _keep(found, path, name, within + member, data)
            else:
                _from_zip(path, io.BytesIO(data), wanted, found, f"{member}:")
    return found


def read_members(path: Path, wanted: Collection[str]) -> dict[str, bytes]:
    """Return the wanted files of a folder, a tar or a zip, by path; missing ones are left out.

    A wanted path such as "train/X_train.txt" matches the end of a member's path, and must match only once; in an .npz
    it must be the whole path.
    """
    with reading(path):
        if path.is_dir():
            return {name: read_file(path / name) for name in wanted if (path / name).is_file()}
        if path.suffix.lower() in (".zip", ".npz"):
            with path.open("rb") as content:
                found = _from_zip(path, content, wanted, {})
        else:
            found = _from_tar(path, wanted)
    return {name: content for name, (_, content) in found.items()}
