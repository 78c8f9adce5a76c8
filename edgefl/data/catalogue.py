"""Catalogue of known data sets: list them, and load one by name or path.

To add a data set, describe it as a `Source` in its format's module and add it to `KNOWN`.
"""

from dataclasses import dataclass
from pathlib import Path

from edgefl.data.dataset import Dataset
from edgefl.data.formats.cifar import CIFAR10, CIFAR100
from edgefl.data.formats.digits import DIGITS
from edgefl.data.formats.har import HAR
from edgefl.data.formats.idx import EMNIST_LETTERS, FASHION_MNIST, MNIST
from edgefl.data.formats.npz import read_npz
from edgefl.data.formats.shakespeare import SHAKESPEARE
from edgefl.data.sources import Source
from edgefl.errors import DataError

__all__ = ["KNOWN", "CatalogueEntry", "catalogue", "load"]

KNOWN: tuple[Source, ...] = (
    DIGITS,
    FASHION_MNIST,
    MNIST,
    EMNIST_LETTERS,
    CIFAR10,
    CIFAR100,
    HAR,
    SHAKESPEARE,
)


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A known data set, where it is on this machine (None if it is not), and how to get it."""

    name: str
    title: str
    found_at: Path | None
    how_to_get: str


def catalogue() -> tuple[CatalogueEntry, ...]:
    """Return every known data set. It checks file names only, so it is quick but does not notice damaged files."""
    return tuple(CatalogueEntry(each.name, each.title, each.locate(), each.how_to_get) for each in KNOWN)


def _load_path(path: Path) -> Dataset:
    """Load a data set from a file or folder, recognised by names: an .npz, or a known data set."""
    if path.suffix.lower() == ".npz":
        return read_npz(path)
    found = [(source, place) for source in KNOWN if (place := source.find(path)) is not None]
    if len(found) > 1:  # any .txt may be a play: Shakespeare counts only if nothing else is found
        found = [(source, place) for source, place in found if source is not SHAKESPEARE]
    if len(found) > 1:  # MNIST and Fashion-MNIST have the same file names: the folder's name decides
        found = [(source, place) for source, place in found if source.name == path.resolve().name] or found
    if not found:
        raise DataError(
            f"{path} contains no known data set",
            fix="Give an .npz file, or the folder or archive of a data set in `edgefl data list`",
        )
    if len(found) > 1:
        names = " or ".join(source.name for source, _ in found)
        raise DataError(f"{path} could be {names}", fix=f"Name the data set: {found[0][0].name} --folder {path}")
    source, place = found[0]
    return source.read(place)


def load(name_or_path: str | Path = "digits", folder: str | Path | None = None) -> Dataset:
    """Load a known data set by name (from `folder` if given), or a data set from a path."""
    source = next((each for each in KNOWN if each.name == str(name_or_path)), None)
    path = Path(name_or_path)
    try:
        if source is not None:
            return source.load(None if folder is None else Path(folder))
        if path.exists() and folder is None:
            return _load_path(path)
    except OSError as error:  # no permission, name too long, disk failure
        raise DataError(f"{path} cannot be read: {error}", fix="Check the path and its permissions") from error
    names = ", ".join(each.name for each in KNOWN)
    if folder is not None:
        raise DataError(
            f"{str(name_or_path)!r} is not a known data set, and a folder needs the name of one",
            fix=f"Give a path without --folder, or one of: {names}",
        )
    raise DataError(
        f"{str(name_or_path)!r} is neither a known data set nor an existing file or folder",
        fix=f"Known data sets: {names}; or give the path of an .npz file",
    )
