"""Your own data: any .npz file with the arrays x and y.

    np.savez("mine.npz", x=images, y=labels)           # optionally also x_test, y_test
    np.savez("mine.npz", x=..., y=..., owners=...)     # and owners_test; numbers or names
    np.savez("mine.npz", ..., owner_kind="sensor", class_names=["cat", "dog"])
    np.savez("mine.npz", ..., mean=[0.49, 0.48, 0.45], std=[0.25, 0.24, 0.26], scale=255)

Bytes (uint8) are pixels and are normalised by mean and std (one, or one per channel, after a division by scale, 255);
without these, by those of the federation that a device joins, or else by their own mean and deviation. Floats are used
unchanged; other integers are tokens for an embedding. Images are NCHW; bytes in three dimensions are grey images and
become (N, 1, H, W). Without x_test, every fifth sample of each label (of each owner, if there are any) is a test
sample. Nothing is unpickled, and no header is trusted before its array is read.
"""

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.data.archives import damaged, read_members, reading
from edgefl.data.dataset import MOST_CLASSES, Dataset
from edgefl.data.formats.every_fifth import every_fifth
from edgefl.data.normalisation import Normalisation
from edgefl.data.samples import Samples, frozen
from edgefl.errors import DataError

__all__ = ["read_npz"]

KEYS = ("x", "y", "owners", "x_test", "y_test", "owners_test", "owner_kind", "class_names", "mean", "std", "scale")


def _array(file: str, content: bytes) -> NDArray[Any]:
    """Return an .npy file as a read-only view of its bytes. numpy's own reader allocates what the header says."""
    stream = io.BytesIO(content)
    shape, in_columns, dtype = _header(file, stream)
    if dtype.hasobject:
        raise damaged(file, "it contains Python objects, which are never unpickled")
    expected = dtype.itemsize
    for size in shape:
        expected *= size
    if expected != len(content) - stream.tell():
        raise damaged(file, f"its header promises {expected:,} bytes, but {len(content) - stream.tell():,} follow it")
    if min(shape, default=1) < 0 or dtype.itemsize == 0:
        raise damaged(file, f"its header says the shape {shape} of {dtype}")
    with reading(file):
        flat: NDArray[Any] = np.frombuffer(content, dtype=dtype, offset=stream.tell())
        shaped = flat.reshape(shape, order="F" if in_columns else "C")
    return shaped if dtype.isnative else frozen(shaped.astype(dtype.newbyteorder("=")))


def _header(file: str, stream: io.BytesIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape, order and type that an .npy file claims to have."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy warns of headers written by Python 2
            if np.lib.format.read_magic(stream) == (1, 0):
                return np.lib.format.read_array_header_1_0(stream)
            return np.lib.format.read_array_header_2_0(stream)
    except Exception as error:  # the header is a Python literal: garbage can raise anything
        raise damaged(file, f"its header cannot be read ({type(error).__name__})") from error


def _owner_ids(
    train: NDArray[Any] | None, test: NDArray[Any] | None
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None, tuple[str, ...] | None]:
    """Return owners as ids from 0, the same for training and test samples, and their names."""
    if train is None:
        return None, None, None
    both = train if test is None else np.concatenate([train, test])
    if both.ndim != 1 or both.dtype.kind not in "iuU":
        raise DataError(
            f"The owners have type {both.dtype} and shape {both.shape}",
            fix="Give one whole number or one name per sample",
        )
    names, ids = np.unique(both, return_inverse=True)
    ids = ids.astype(np.int64).reshape(-1)
    return ids[: len(train)], None if test is None else ids[len(train) :], tuple(map(str, names.tolist()))


def _labels(arrays: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any] | None, int]:
    """Return the training and test labels, and the number of classes."""
    labels = [arrays[key] for key in ("y", "y_test") if key in arrays]
    for key, each in zip(("y", "y_test"), labels, strict=False):
        if each.dtype.kind not in "iu" or each.ndim != 1:
            raise DataError(
                f"{key} has type {each.dtype} and shape {each.shape}",
                fix="Give one whole number per sample, with classes numbered from 0",
            )
    classes = max((int(each.max()) + 1 for each in labels if len(each)), default=0)
    if classes > MOST_CLASSES:
        raise DataError(f"A label is {classes - 1}", fix=f"Number the classes from 0, at most {MOST_CLASSES} of them")
    return labels[0], labels[1] if len(labels) > 1 else None, classes


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    members = read_members(path, [f"{key}.npy" for key in KEYS])
    arrays = {name.removesuffix(".npy"): _array(f"{path}:{name}", content) for name, content in members.items()}
    if "x" not in arrays or "y" not in arrays:
        raise DataError(
            f"{path} lacks an array 'x' or 'y'",
            fix=f"Save it with numpy.savez('{path.name}', x=features, y=labels)",
        )
    if ("x_test" in arrays) != ("y_test" in arrays):
        raise DataError(f"{path} has only one of 'x_test' and 'y_test'", fix="Give both or neither")
    if ("owners" in arrays and "x_test" in arrays) != ("owners_test" in arrays):
        raise DataError(
            f"{path} has only one of 'owners' and 'owners_test'", fix="Give 'owners' and 'owners_test', or neither"
        )
    for key in ("x", "x_test"):
        if key in arrays and arrays[key].dtype == np.uint8 and arrays[key].ndim == 3:
            arrays[key] = arrays[key][:, np.newaxis]
    return arrays


def _normalisation(arrays: dict[str, NDArray[Any]], features: NDArray[Any]) -> tuple[Normalisation | None, bool]:
    """Return the normalisation of a file, and whether the file itself says it."""
    is_bytes = features.dtype == np.uint8 and len(features) > 0
    if not {"mean", "std", "scale"} & arrays.keys():
        return (Normalisation.measured(features), False) if is_bytes else (None, True)
    said = {key: arrays[key].reshape(-1) for key in ("mean", "std", "scale") if key in arrays}
    numeric = all(each.dtype.kind in "iuf" for each in said.values())
    if not (is_bytes and numeric and "mean" in said and "std" in said and len(said.get("scale", [1])) == 1):
        raise DataError(
            f"The arrays {', '.join(sorted(said))} are not a normalisation of x, which has type {features.dtype}",
            fix="Give mean and std as numbers, with or without a scale, for bytes (uint8) only",
        )
    mean, std, scale = (tuple(map(float, said[key])) if key in said else (255.0,) for key in ("mean", "std", "scale"))
    return Normalisation(mean, std, scale[0]), True


def read_npz(path: Path) -> Dataset:
    """Load a data set from an .npz file."""
    arrays = _arrays(path)
    y, y_test, classes = _labels(arrays)
    owners, owners_test, owner_names = _owner_ids(arrays.get("owners"), arrays.get("owners_test"))
    if y_test is None:
        everything = Samples(arrays["x"], y, owners)
        test_rows = every_fifth(everything.labels, everything.owners)
        train, test = (
            Samples(frozen(arrays["x"][rows]), y[rows], None if owners is None else owners[rows])
            for rows in (~test_rows, test_rows)
        )
    else:
        train, test = Samples(arrays["x"], y, owners), Samples(arrays["x_test"], y_test, owners_test)
    kind = str(arrays["owner_kind"]) if "owner_kind" in arrays else "owner"
    names = arrays.get("class_names")
    normalisation, is_own = _normalisation(arrays, train.features)
    return Dataset(
        name=path.stem,
        train=train,
        test=test,
        classes=classes,
        class_names=None if names is None else tuple(map(str, names.reshape(-1).tolist())),
        owner_kind=None if owner_names is None else kind,
        owner_names=owner_names,
        normalisation=normalisation,
        normalisation_is_own=is_own,
    )
