"""Samples that are nothing but labels and owners, for the tests that divide them."""

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgefl.data import Samples


def samples_of(labels: NDArray[np.int64], owners: NDArray[np.int64] | None = None) -> Samples:
    return Samples(np.zeros((len(labels), 1), dtype=np.uint8), labels, owners)


def balanced(classes: int, each: int) -> Samples:
    return samples_of(np.tile(np.arange(classes), each))


@st.composite
def labelled(draw: st.DrawFn) -> Samples:
    """Samples of 1 to 8 labels (some of them unused numbers) in uneven amounts, with owners."""
    sizes = draw(st.lists(st.integers(1, 60), min_size=1, max_size=8))
    values = draw(st.permutations(range(12)))[: len(sizes)]
    labels = np.repeat(values, sizes).astype(np.int64)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    rng.shuffle(labels)
    return samples_of(labels, rng.integers(0, 7, len(labels)))
