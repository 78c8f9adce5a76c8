"""The files of a data set: which are missing, and writing them. Each is known by its SHA-256."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from edgefl.artifacts.artifact_store import write_atomically
from edgefl.errors import DataError

__all__ = ["Digests", "missing_files", "write_files"]

Digests = Mapping[str, str]
"""By name of a file: the SHA-256 of its content."""


def missing_files(folder: Path, digests: Digests) -> list[str]:
    """Return the files that a folder does not have, or has with another content."""
    return [name for name, digest in digests.items() if _digest_of(folder / name) != digest]


def write_files(folder: Path, names: list[str], contents: Mapping[str, bytes], digests: Digests) -> None:
    """Write some files, each whole or not at all. No file is written unless all are as expected."""
    for name in names:
        found = hashlib.sha256(contents[name]).hexdigest()
        if found != digests[name]:
            raise DataError(
                f"{name} would have the SHA-256 {found}, not {digests[name]}: the package holds something else",
                fix="Do not use this package; get the data set from its publisher (see `edgefl data list`)",
            )
    for number, name in enumerate(names, start=1):
        write_atomically(folder / name, contents[name])
        print(f"[{number} of {len(names)}] {folder / name}")


def _digest_of(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
