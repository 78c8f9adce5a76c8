"""The data that a client under test is given: images of 8x8 that look like ten simple digits, made from noise.

Every client must train on exactly these, or its updates cannot be compared. 90 samples, of which a client holds out a
tenth for validation, leave 81: one more than a multiple of 16 and of 20, so that last batches are short.
"""

import io
from functools import cache
from pathlib import Path

import numpy as np

from edgefl.artifacts.artifact_store import write_atomically
from edgefl.data import Dataset, Samples
from edgefl.masks import Array
from edgefl.noise import derive, symmetric

__all__ = ["CLASSES", "SAMPLE_SHAPE", "conformance_dataset", "write_samples"]

CLASSES = 10
SAMPLE_SHAPE = (1, 8, 8)
_TRAIN, _TEST = 90, 10
_SEED = 8
_NOISE = 0.6


@cache
def conformance_dataset() -> Dataset:
    """Return the data."""
    train, test = (Samples(*_drawn(name, count)) for name, count in (("train", _TRAIN), ("test", _TEST)))
    return Dataset("conformance", train, test, CLASSES)


def write_samples(path: Path) -> None:
    """Write the data as an .npz file."""
    data = conformance_dataset()
    arrays = {
        "x": data.train.features,
        "y": data.train.labels,
        "x_test": data.test.features,
        "y_test": data.test.labels,
    }
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    write_atomically(path, content.getvalue())


def _drawn(name: str, count: int) -> tuple[Array, Array]:
    """Return samples: the picture of their class, and noise."""
    size = int(np.prod(SAMPLE_SHAPE))
    pictures = symmetric(derive(_SEED, "pictures"), 0, CLASSES * size, 1.0).reshape(CLASSES, *SAMPLE_SHAPE)
    labels = np.arange(count, dtype=np.int64) % CLASSES
    drawn = symmetric(derive(_SEED, name), 0, count * size, _NOISE).reshape(count, *SAMPLE_SHAPE)
    return (pictures[labels] + drawn).astype(np.float32), labels
