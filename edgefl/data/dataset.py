"""Data set: training and test samples, and the names of classes and owners.

Loaders build it; partitions and trainers read it. Features stay in the raw type of their file (a Raspberry Pi then
holds bytes, not floats); `Dataset.batch` converts one batch to float32 when needed. This module is independent of file
formats and partitions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgefl.data.normalisation import Normalisation
from edgefl.data.samples import Samples, frozen
from edgefl.errors import DataError

__all__ = ["MOST_CLASSES", "Dataset", "Part", "some_samples"]

Part = Literal["train", "test"]

# With more, a "label" is an id, a year or a measurement, and tables of clients by classes would not fit in memory.
MOST_CLASSES = 65_536


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A data set with its published (or fixed) division into training and test samples.

    `owner_kind` is what an owner is, such as "writer", "subject" or "role", and `owner_names[i]` the name of owner i.
    Without a normalisation, float features are used unchanged, and integer features are tokens for an embedding. A
    normalisation that is not the data set's own was measured on its bytes, and a federation's takes its place.
    """

    name: str
    train: Samples
    test: Samples
    classes: int
    class_names: tuple[str, ...] | None = None
    owner_kind: str | None = None
    owner_names: tuple[str, ...] | None = None
    normalisation: Normalisation | None = None
    normalisation_is_own: bool = True

    def __post_init__(self) -> None:
        if len(self.train) == 0:
            raise DataError(f"The data set {self.name!r} has no training samples", fix="Give at least one")
        if self.train.features.shape[1:] != self.test.features.shape[1:]:
            raise DataError(
                f"In {self.name!r} a training sample has the shape {self.train.features.shape[1:]} and a "
                f"test sample {self.test.features.shape[1:]}",
                fix="Give all samples the same shape",
            )
        if not 1 <= self.classes <= MOST_CLASSES:
            raise DataError(
                f"{self.name!r} has {self.classes} classes",
                fix=f"Number the classes from 0, at most {MOST_CLASSES} of them",
            )
        self._check_ids("labels", self.classes)
        if self.class_names is not None and len(self.class_names) != self.classes:
            raise DataError(
                f"{self.name!r} has {self.classes} classes but {len(self.class_names)} class names",
                fix="Give one name per class, or none at all",
            )
        has_owners = (self.train.owners is not None, self.test.owners is not None or len(self.test) == 0)
        known = self.owner_names is not None and self.owner_kind is not None
        if known != has_owners[0] or (known and not has_owners[1]):
            raise DataError(
                f"{self.name!r} gives the owners of its samples only partially",
                fix="Give the owners of training and test samples, owner_kind and owner_names, or none of them",
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
                fix="Give one mean and std, or one per channel",
            )

    def batch(
        self, indices: NDArray[np.int64] | Sequence[int], part: Part = "train"
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return model-ready features of some samples (float32, or int64 tokens) and their labels."""
        if part not in ("train", "test"):
            raise DataError(
                f"A data set has no part {part!r}",
                fix="Use 'train' or 'test'; validation samples are indices of training samples (split_clients)",
            )
        samples = self.train if part == "train" else self.test
        chosen = np.asarray(indices, dtype=np.int64 if len(indices) == 0 else None)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise DataError(
                f"Indices of type {chosen.dtype} and shape {chosen.shape} select no samples",
                fix="Give a list of whole numbers",
            )
        if len(chosen) and (int(chosen.min()) < 0 or int(chosen.max()) >= len(samples)):
            raise DataError(
                f"Indices from {chosen.min()} to {chosen.max()} exceed the {len(samples)} {part} samples",
                fix=f"Give indices from 0 to {len(samples) - 1}",
            )
        raw = samples.features[chosen]
        if self.normalisation is not None:
            return self.normalisation.apply(raw), samples.labels[chosen]
        return raw.astype(np.float32 if raw.dtype.kind == "f" else np.int64), samples.labels[chosen]

    def evenly(self, count: int, part: Part = "train") -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return at most `count` samples spread evenly over a part, as a batch."""
        size = len(self.train if part == "train" else self.test)
        chosen = min(count, size)
        return self.batch([at * size // chosen for at in range(chosen)], part)

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raise unless the samples have the shape that a model takes."""
        found = self.train.features.shape[1:]
        if found != tuple(shape):
            raise DataError(
                f"a sample of {self.name!r} has the shape {found}, but the model takes {tuple(shape)}",
                fix="Give data of the model's shape.",
            )

    def pooled(self) -> "Dataset":
        """Return the same data with all test samples moved to the training samples.

        For data sets whose published test samples have other owners than the training samples (UCI HAR): every owner
        becomes a client, and `split_clients` then gives each its own test samples.
        """
        if len(self.test) == 0:
            return self
        owners = None
        if self.train.owners is not None and self.test.owners is not None:
            owners = np.concatenate([self.train.owners, self.test.owners])
        features = frozen(np.concatenate([self.train.features, self.test.features]))
        everything = Samples(features, np.concatenate([self.train.labels, self.test.labels]), owners)
        nothing = Samples(features[:0], everything.labels[:0], None if owners is None else owners[:0])
        return replace(self, train=everything, test=nothing)


def some_samples(dataset: Dataset, train: int | None, test: int | None) -> Dataset:
    """Return a data set with at most `train` and `test` samples, drawn with a fixed seed; None means all."""
    return replace(dataset, train=_some(dataset.train, train), test=_some(dataset.test, test))


def _some(samples: Samples, count: int | None) -> Samples:
    if count is None or count >= len(samples):
        return samples
    chosen = np.sort(np.random.default_rng(0).permutation(len(samples))[:count])
    owners = None if samples.owners is None else samples.owners[chosen]
    return Samples(samples.features[chosen], samples.labels[chosen], owners)
