"""The data sets of the study, cut down where a comparison asks for it. The same seed gives the same samples."""

from dataclasses import replace
from functools import cache

import numpy as np

from edgefl.data import Dataset, Samples, load

__all__ = ["dataset_of", "shrunk"]

_SMALL = "-8"


@cache
def dataset_of(name: str, train: int | None, test: int | None) -> Dataset:
    """Return a data set, or so many samples of it; "-8" at the end of a name makes images of 8x8 out of 28x28."""
    whole = load(name.removesuffix(_SMALL))
    parts = _some(whole.train, train), _some(whole.test, test)
    if name.endswith(_SMALL):
        parts = shrunk(parts[0]), shrunk(parts[1])
    return replace(whole, name=name, train=parts[0], test=parts[1])


def _some(samples: Samples, count: int | None) -> Samples:
    if count is None or count >= len(samples):
        return samples
    chosen = np.sort(np.random.default_rng(0).permutation(len(samples))[:count])
    return Samples(samples.features[chosen], samples.labels[chosen])


def shrunk(samples: Samples) -> Samples:
    """Return the means of blocks of 4x4 pixels, with a border at the right and below: 28 becomes 7 + 1."""
    n, channels, height, width = samples.features.shape
    blocks = samples.features.reshape(n, channels, height // 4, 4, width // 4, 4).mean(axis=(3, 5))
    framed = np.pad(np.rint(blocks), ((0, 0), (0, 0), (0, 1), (0, 1)))
    return Samples(framed.astype(samples.features.dtype), samples.labels)
