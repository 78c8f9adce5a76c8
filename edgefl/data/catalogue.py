"""Every known data set: list them, and load one by its name or its path.

The command line and the simulator call this. To add a set, describe it as a `Source` in its format's file and
add it to `KNOWN`.
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
    """A known set, where it is on this machine (None if it is not), and how to get it."""

    name: str
    title: str
    found_at: Path | None
    how_to_get: str


def catalogue() -> tuple[CatalogueEntry, ...]:
    """Every known set. Only names are looked at, so this is quick and says nothing about damaged files."""
    return tuple(CatalogueEntry(each.name, each.title, each.locate(), each.how_to_get) for each in KNOWN)


def _load_path(path: Path) -> Dataset:
    """A data set from its file or folder, told by names: an .npz, or whichever known set is there."""
    if path.suffix.lower() == ".npz":
        return read_npz(path)
    found = [(source, place) for source in KNOWN if (place := source.find(path)) is not None]
    if len(found) > 1:  # any .txt may be a play: Shakespeare counts where nothing else is found
        found = [(source, place) for source, place in found if source is not SHAKESPEARE]
    if len(found) > 1:  # MNIST and Fashion-MNIST have the same file names: the folder's name decides
        found = [(source, place) for source, place in found if source.name == path.resolve().name] or found
    if not found:
        raise DataError(
            f"{path} holds no known data set",
            fix="Give an .npz file, or a folder or archive of a set that `edgefl data list` names",
        )
    if len(found) > 1:
        names = " or ".join(source.name for source, _ in found)
        raise DataError(f"{path} could be {names}", fix=f"Say which: {found[0][0].name} --folder {path}")
    source, place = found[0]
    return source.read(place)


def load(name_or_path: str | Path = "digits", folder: str | Path | None = None) -> Dataset:
    """A known data set by its name (looked for in `folder` if it is given), or one from a path."""
    source = next((each for each in KNOWN if each.name == str(name_or_path)), None)
    path = Path(name_or_path)
    try:
        if source is not None:
            return source.load(None if folder is None else Path(folder))
        if path.exists() and folder is None:
            return _load_path(path)
    except OSError as error:  # no permission, a name too long, a disk that fails
        raise DataError(f"{path} cannot be read: {error}", fix="Check the path and its permissions") from error
    names = ", ".join(each.name for each in KNOWN)
    if folder is not None:
        raise DataError(
            f"{str(name_or_path)!r} is not the name of a known set, and a folder goes with a name only",
            fix=f"Give the path alone, without --folder, or one of: {names}",
        )
    raise DataError(
        f"There is no data set {str(name_or_path)!r}, nor a file or folder of that name",
        fix=f"Known sets are: {names}; or give the path of an .npz file",
    )
