"""Reads zip files of strangers: bundles that were uploaded or downloaded.

Nothing is unpacked to disk, so names cannot escape a folder; odd ones are refused all the same. Memory is bounded
before anything is read: by the size of the zip's directory, and by the sizes that it declares. Content is read in
pieces up to those, so a wrong declaration does not help.
"""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path

from edgefl.errors import SchemaError

__all__ = ["read_zip"]

MOST_ENTRIES = 10_000
_MOST_DIRECTORY_BYTES = 4 * 2**20
_LARGEST = 4 * 2**30
_FREE_BYTES = 64 * 2**20
_MOST_RATIO = 16
_PIECE = 2**20
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_END = struct.Struct("<4s4H2LH")
_ZIP64_LOCATOR_BYTES = 20


def read_zip(file: Path | bytes, names: Collection[str], origin: str) -> dict[str, bytes]:
    """Return the named files that a zip file has. Raise a `SchemaError` if it is damaged or made to do harm."""
    try:
        with io.BytesIO(file) if isinstance(file, bytes) else file.open("rb") as stream:
            size = stream.seek(0, io.SEEK_END)
            _check_end(stream, size, origin)
            with zipfile.ZipFile(stream) as archive:
                entries = _checked_entries(archive.infolist(), size, origin)
                return {name: _content(archive, entries[name]) for name in names if name in entries}
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, zlib.error, RuntimeError, ValueError) as error:
        raise SchemaError(
            f"{origin} is not a readable zip file ({error})", fix="Export or copy the bundle again."
        ) from None


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return the content of an entry. `archive.read` would decompress all of it first, whatever its declared size."""
    with archive.open(entry) as stream:
        return b"".join(iter(lambda: stream.read(_PIECE), b""))


def _check_end(stream: io.IOBase, size: int, origin: str) -> None:
    """Check the record at the end of a zip: the whole directory is read into memory, many bytes for each of its own."""
    stream.seek(max(0, size - _END.size - _ZIP64_LOCATOR_BYTES))
    tail = stream.read()
    end = tail[-_END.size :]
    if len(end) < _END.size or not end.startswith(b"PK\x05\x06"):
        raise zipfile.BadZipFile("it does not end like a zip file")
    _, _, _, _, entries, directory_bytes, _, comment_bytes = _END.unpack(end)
    if tail.startswith(b"PK\x06\x07") or comment_bytes:
        raise zipfile.BadZipFile("it has a comment or is larger than 4 GiB")
    if entries > MOST_ENTRIES or directory_bytes > _MOST_DIRECTORY_BYTES:
        raise SchemaError(
            f"{origin} has a directory of {directory_bytes:,} bytes for {entries:,} entries",
            fix=f"A bundle has at most {MOST_ENTRIES:,} files.",
        )


def _checked_entries(found: list[zipfile.ZipInfo], packed: int, origin: str) -> dict[str, zipfile.ZipInfo]:
    """Return the files of a zip by name."""
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in found:
        problem = _problem(entry)
        if entry.filename in entries:
            problem = "a name that occurs twice"
        if problem:
            raise SchemaError(
                f"{origin} has an entry with {problem}: {entry.orig_filename[:80]!r}",
                fix="Use a bundle that `edgefl export` wrote.",
            )
        entries[entry.filename] = entry
    total, most = sum(entry.file_size for entry in found), _FREE_BYTES + _MOST_RATIO * packed
    if total > min(most, _LARGEST):
        raise SchemaError(
            f"{origin} has {packed:,} bytes and unpacks to {total:,}, more than the accepted {min(most, _LARGEST):,}",
            fix="If the model is really so large, zip it without compression (`zip -0`).",
        )
    return entries


def _problem(entry: zipfile.ZipInfo) -> str | None:
    """Return what is wrong with an entry. Directories are harmless: nothing is read from them."""
    name = entry.orig_filename
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if "\\" in name or "\0" in name or name.startswith("/") or name[1:2] == ":" or ".." in name.split("/"):
        return "a path outside its folder"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "a link or device"
    if entry.flag_bits & 0x1:
        return "encrypted content"
    if entry.compress_type not in _METHODS:
        return f"the compression {entry.compress_type}"
    return None
