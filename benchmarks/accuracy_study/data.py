"""The data sets of the study, reduced if a comparison needs it. The same seed gives the same samples."""

from dataclasses import replace
from functools import cache

import numpy as np

from benchmarks.accuracy_study.setups import Setup
from edgefl.data import Dataset, Samples, load, some_samples
from edgefl.errors import DataError

__all__ = ["dataset_of", "missing_data", "of_own_classes", "shrunk"]

_FACTORS = {"-8": 4, "-14": 2, "-16": 2}
"""What the sides of an image are divided by, for the end of a data set's name."""


@cache
def dataset_of(name: str, train: int | None, test: int | None) -> Dataset:
    """Return a data set, or some samples of it; "-8", "-14" or "-16" at the end of a name is the side of its images."""
    end = next((end for end in _FACTORS if name.endswith(end)), "")
    some = some_samples(load(name.removesuffix(end)), train, test)
    if not end:
        return some
    factor = _FACTORS[end]
    return replace(some, name=name, train=shrunk(some.train, factor), test=shrunk(some.test, factor))


def of_own_classes(dataset: Dataset, count: int) -> list[Dataset]:
    """Return so many data sets that have the training samples of some classes each; all have every test sample."""
    train = dataset.train
    owners = train.labels * count // dataset.classes
    return [
        replace(dataset, train=Samples(train.features[owners == own], train.labels[owners == own]))
        for own in range(count)
    ]


def missing_data(setup: Setup) -> str | None:
    """Return why a set-up cannot be run here, if its data are missing."""
    try:
        dataset_of(setup.data, setup.train, setup.test)
    except DataError as error:
        return f"{setup.name}: {error}"
    return None


def shrunk(samples: Samples, factor: int = 4) -> Samples:
    """Return the means of blocks of pixels; an odd side gets a border at the right and below: 28 becomes 7 + 1."""
    n, channels, height, width = samples.features.shape
    blocks = samples.features.reshape(n, channels, height // factor, factor, width // factor, factor).mean(axis=(3, 5))
    framed = np.pad(np.rint(blocks), ((0, 0), (0, 0), (0, height // factor % 2), (0, width // factor % 2)))
    return Samples(framed.astype(samples.features.dtype), samples.labels)
