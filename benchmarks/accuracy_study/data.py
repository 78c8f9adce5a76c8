"""The data sets of the study, reduced if a comparison needs it. The same seed gives the same samples."""

from dataclasses import replace
from functools import cache

import numpy as np

from edgefl.data import Dataset, Samples, load, some_samples

__all__ = ["dataset_of", "shrunk"]

_SMALL = "-8"


@cache
def dataset_of(name: str, train: int | None, test: int | None) -> Dataset:
    """Return a data set, or so many samples of it; "-8" at the end of a name makes images of 8x8 out of 28x28."""
    some = some_samples(load(name.removesuffix(_SMALL)), train, test)
    if not name.endswith(_SMALL):
        return some
    return replace(some, name=name, train=shrunk(some.train), test=shrunk(some.test))


def shrunk(samples: Samples) -> Samples:
    """Return the means of blocks of 4x4 pixels, with a border at the right and below: 28 becomes 7 + 1."""
    n, channels, height, width = samples.features.shape
    blocks = samples.features.reshape(n, channels, height // 4, 4, width // 4, 4).mean(axis=(3, 5))
    framed = np.pad(np.rint(blocks), ((0, 0), (0, 0), (0, 1), (0, 1)))
    return Samples(framed.astype(samples.features.dtype), samples.labels)
