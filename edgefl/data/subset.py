"""Fewer samples of a data set, drawn by chance that is always the same."""

from dataclasses import replace

import numpy as np

from edgefl.data.dataset import Dataset
from edgefl.data.samples import Samples

__all__ = ["some_samples"]


def some_samples(dataset: Dataset, train: int | None, test: int | None) -> Dataset:
    """Return a data set with at most so many training and test samples; None is all of them."""
    return replace(dataset, train=_some(dataset.train, train), test=_some(dataset.test, test))


def _some(samples: Samples, count: int | None) -> Samples:
    if count is None or count >= len(samples):
        return samples
    chosen = np.sort(np.random.default_rng(0).permutation(len(samples))[:count])
    owners = None if samples.owners is None else samples.owners[chosen]
    return Samples(samples.features[chosen], samples.labels[chosen], owners)
