"""scikit-learn's handwritten digits: 1,797 real 8x8 images that need no download.

The csv file is read from scikit-learn's installation without importing scikit-learn (or scipy), which takes a second
and which the core must not need. There are no published test samples, so every fifth sample of each digit, in the order
of the file, is one. The file is sorted by writer, so every writer is in both parts.
"""

import importlib.util
import io
from pathlib import Path

import numpy as np

from edgefl.data.archives import damaged, read_file, reading
from edgefl.data.dataset import Dataset
from edgefl.data.formats.every_fifth import every_fifth
from edgefl.data.normalisation import Normalisation
from edgefl.data.samples import Samples, frozen
from edgefl.data.sources import Source
from edgefl.errors import MissingDependencyError

__all__ = ["DIGITS"]

FILE = "digits.csv.gz"
SIDE = 8
DARKEST = 16


def _usual_places() -> tuple[Path, ...]:
    package = importlib.util.find_spec("sklearn")  # finds the folder; imports nothing
    if package is None or not package.submodule_search_locations:
        return ()
    return tuple(Path(place) / "datasets" / "data" for place in package.submodule_search_locations)


def _find(place: Path) -> Path | None:
    candidates = (place, place / FILE, place / "digits.csv")
    return next((path for path in candidates if path.is_file() and path.name.startswith("digits.csv")), None)


def _read(path: Path) -> Dataset:
    text = read_file(path)
    if not text.strip():
        raise damaged(path, "it is empty")
    with reading(path):
        table = np.loadtxt(io.BytesIO(text), delimiter=",", dtype=np.float64, ndmin=2, comments=None)
    if table.shape[1] != SIDE * SIDE + 1:
        raise damaged(path, f"a line has {table.shape[1]} numbers, not {SIDE * SIDE} pixels and a label")
    pixels, labels = table[:, :-1], table[:, -1]
    if not (np.isin(pixels, np.arange(DARKEST + 1)).all() and np.isin(labels, np.arange(10)).all()):
        raise damaged(path, f"pixels must be whole numbers from 0 to {DARKEST} and labels from 0 to 9")
    images = pixels.astype(np.uint8).reshape(-1, 1, SIDE, SIDE)
    digits = labels.astype(np.int64)
    test = every_fifth(digits)
    return Dataset(
        name="digits",
        train=Samples(frozen(images[~test]), digits[~test]),
        test=Samples(frozen(images[test]), digits[test]),
        classes=10,
        class_names=tuple("0123456789"),
        normalisation=Normalisation.measured(images[~test], scale=DARKEST),
    )


def _package() -> MissingDependencyError:
    return MissingDependencyError("scikit-learn", action="Loading the digits", extra="data")


DIGITS = Source(
    name="digits",
    title="scikit-learn digits: 1,797 handwritten digits, 8x8, 10 classes",
    looks_for=FILE,
    how_to_get=f"It comes with scikit-learn. {_package().fix}",
    find=_find,
    read=_read,
    usual_places=_usual_places,
    needs_package=_package,
)
