"""The values of this room: samples, how to normalise them, and a data set made of both.

Loaders build them, partitions and trainers read them. Features stay as raw as their file had them (a
Raspberry Pi then holds bytes and not floats); `Dataset.batch` makes the float32 of one batch when it is
wanted. Nothing here knows a file format or a way to divide data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgefl.errors import DataError

__all__ = ["Samples", "Normalisation", "Dataset", "Part", "read_only"]

Part = Literal["train", "test"]

# Above this a "label" is an id, a year or a measurement; tables of clients times classes would not fit
# anyway.
MOST_CLASSES = 65_536

_ROWS_AT_ONCE = 4096


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only form of an array: a copy if it is writable, itself if it is read-only already.

    A loader that made an array marks it read-only and so pays for no second copy of its data.
    """
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def _whole_numbers(values: NDArray[Any], what: str, count: int) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise DataError(
            f"The {what} have the type {array.dtype}, which is no integer type",
            fix=f"Give one integer a sample as {what}, for example with .astype('int64')",
        )
    if array.shape != (count,):
        raise DataError(
            f"The {what} have the shape {array.shape}, but there are {count} samples",
            fix=f"Give exactly one of the {what} to every sample: the shape must be ({count},)",
        )
    whole = read_only(array.astype(np.int64))
    if count and int(whole.min()) < 0:
        raise DataError(f"One of the {what} is {int(whole.min())}", fix=f"Number the {what} from 0 up")
    return whole


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Features in their raw type, one label a sample, and where it is known whose sample it is.

    A writable array is copied; a read-only one is taken as it is.
    """

    features: NDArray[Any]
    labels: NDArray[np.int64]
    owners: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        features = read_only(np.asarray(self.features))
        if features.ndim < 2 or features.dtype.kind not in "buif":
            raise DataError(
                f"The features have the type {features.dtype} and the shape {features.shape}",
                fix="Give numbers in an array of samples by features, such as (60000, 1, 28, 28)",
            )
        if features.dtype.kind == "f" and not all(
            np.isfinite(features[at : at + _ROWS_AT_ONCE]).all() for at in range(0, len(features), _ROWS_AT_ONCE)
        ):
            raise DataError("The features hold NaN or infinity", fix="Remove or replace those samples first")
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "labels", _whole_numbers(self.labels, "labels", len(features)))
        if self.owners is not None:
            object.__setattr__(self, "owners", _whole_numbers(self.owners, "owners", len(features)))

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, slots=True)
class Normalisation:
    """`(raw / scale - mean) / std`, with one mean and std for all channels or one a channel (axis 1)."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    scale: float = 255.0

    def __post_init__(self) -> None:
        numbers = np.array([*self.mean, *self.std, self.scale], dtype=np.float64)
        if not self.mean or len(self.mean) != len(self.std) or not np.isfinite(numbers).all():
            raise DataError(
                f"A normalisation by mean {self.mean}, std {self.std} and scale {self.scale} cannot be",
                fix="Give as many finite means as standard deviations: one, or one a channel",
            )
        if min(*self.std, self.scale) <= 0:
            raise DataError(
                f"The std {self.std} or the scale {self.scale} of a normalisation is not above 0",
                fix="A constant channel gets the standard deviation 1",
            )

    def apply(self, raw: NDArray[Any]) -> NDArray[np.float32]:
        """The normalised float32 form of raw features; one new array, whatever the raw type."""
        mean, std = np.array(self.mean), np.array(self.std)
        if len(self.mean) > 1:
            along_channels = (1, -1, *([1] * (raw.ndim - 2)))
            mean, std = mean.reshape(along_channels), std.reshape(along_channels)
        values = raw.astype(np.float32)
        values *= (1.0 / (self.scale * std)).astype(np.float32)
        values -= (mean / std).astype(np.float32)
        return values

    @classmethod
    def measured(cls, features: NDArray[np.uint8], scale: float = 255.0) -> "Normalisation":
        """Mean and standard deviation of bytes, exactly and by channel, without a float copy of them."""
        channels = features.shape[1] if features.ndim > 2 else 1
        counts = np.zeros((channels, 256), dtype=np.int64)
        for at in range(0, len(features), _ROWS_AT_ONCE):
            rows = features[at : at + _ROWS_AT_ONCE].reshape(-1, channels, *features.shape[2:])
            for channel in range(channels):
                counts[channel] += np.bincount(rows[:, channel].ravel(), minlength=256)
        values = np.arange(256) / scale
        mean = counts @ values / counts.sum(axis=1)
        std = np.sqrt(np.maximum(counts @ values**2 / counts.sum(axis=1) - mean**2, 0.0))
        std[std < 1e-9] = 1.0
        return cls(tuple(mean.tolist()), tuple(std.tolist()), scale)


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A data set with its published (or fixed) division into training and test samples.

    `owner_kind` says what an owner is, "writer", "subject" or "role", and `owner_names[i]` who owner i is.
    Without a normalisation, float features are used as they are, and integer features are tokens for an
    embedding.
    """

    name: str
    train: Samples
    test: Samples
    classes: int
    class_names: tuple[str, ...] | None = None
    owner_kind: str | None = None
    owner_names: tuple[str, ...] | None = None
    normalisation: Normalisation | None = None

    def __post_init__(self) -> None:
        if len(self.train) == 0:
            raise DataError(f"The data set {self.name!r} has no training samples", fix="Give at least one")
        if self.train.features.shape[1:] != self.test.features.shape[1:]:
            raise DataError(
                f"In {self.name!r} a training sample has the shape {self.train.features.shape[1:]} and a "
                f"test sample {self.test.features.shape[1:]}",
                fix="Give both parts samples of one shape",
            )
        if not 1 <= self.classes <= MOST_CLASSES:
            raise DataError(
                f"{self.name!r} would have {self.classes} classes",
                fix=f"Number the classes from 0 up, at most {MOST_CLASSES} of them",
            )
        self._check_ids("labels", self.classes)
        if self.class_names is not None and len(self.class_names) != self.classes:
            raise DataError(
                f"{self.name!r} has {self.classes} classes but {len(self.class_names)} class names",
                fix="Give one name a class, or none at all",
            )
        has_owners = (self.train.owners is not None, self.test.owners is not None or len(self.test) == 0)
        known = self.owner_names is not None and self.owner_kind is not None
        if known != has_owners[0] or (known and not has_owners[1]):
            raise DataError(
                f"{self.name!r} says who owns its samples in one place and not in another",
                fix="Give owners of both parts, owner_kind and owner_names, or none of them",
            )
        if self.owner_names is not None:
            self._check_ids("owners", len(self.owner_names))
        self._check_channels()

    def _check_ids(self, field: Literal["labels", "owners"], limit: int) -> None:
        for part, samples in (("training", self.train), ("test", self.test)):
            ids = samples.labels if field == "labels" else samples.owners
            if ids is not None and len(ids) and int(ids.max()) >= limit:
                raise DataError(
                    f"The {part} {field} of {self.name!r} reach {int(ids.max())}, beyond {limit - 1}",
                    fix=f"Number the {field} from 0 to {limit - 1}",
                )

    def _check_channels(self) -> None:
        shape = self.train.features.shape[1:]
        if self.normalisation is not None and len(self.normalisation.mean) not in (1, shape[0]):
            raise DataError(
                f"{self.name!r} has samples of the shape {shape} and a normalisation of "
                f"{len(self.normalisation.mean)} channels",
                fix="Give one mean and std, or one a channel",
            )

    def batch(
        self, indices: NDArray[np.int64] | Sequence[int], part: Part = "train"
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Model-ready features of some samples (float32, or int64 tokens) and their labels."""
        samples = self.train if part == "train" else self.test
        chosen = np.asarray(indices, dtype=np.int64 if len(indices) == 0 else None)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise DataError(
                f"Indices of the type {chosen.dtype} and the shape {chosen.shape} choose no samples",
                fix="Give a list of whole numbers",
            )
        if len(chosen) and (int(chosen.min()) < 0 or int(chosen.max()) >= len(samples)):
            raise DataError(
                f"Indices from {chosen.min()} to {chosen.max()} leave the {len(samples)} {part} samples",
                fix=f"Give indices from 0 to {len(samples) - 1}",
            )
        raw = samples.features[chosen]
        if self.normalisation is not None:
            return self.normalisation.apply(raw), samples.labels[chosen]
        return raw.astype(np.float32 if raw.dtype.kind == "f" else np.int64), samples.labels[chosen]

    def pooled(self) -> "Dataset":
        """The same data with its test samples moved into the training part, which leaves the test part empty.

        For sets whose published test part has other owners than the training part (UCI HAR): every owner
        becomes a client, and `split_clients` then gives each its own test samples.
        """
        owners = None
        if self.train.owners is not None and self.test.owners is not None:
            owners = np.concatenate([self.train.owners, self.test.owners])
        features = np.concatenate([self.train.features, self.test.features])
        features.flags.writeable = False
        everything = Samples(features, np.concatenate([self.train.labels, self.test.labels]), owners)
        nothing = Samples(features[:0], everything.labels[:0], None if owners is None else owners[:0])
        return Dataset(
            self.name,
            everything,
            nothing,
            self.classes,
            self.class_names,
            self.owner_kind,
            self.owner_names,
            self.normalisation,
        )
