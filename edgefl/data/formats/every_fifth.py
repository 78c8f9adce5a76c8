"""A fixed test set for data published without one.

No randomness: the same fifth on every machine and with every version of numpy.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["every_fifth"]


def every_fifth(labels: NDArray[np.int64], owners: NDArray[np.int64] | None = None) -> NDArray[np.bool_]:
    """Mark the 5th, 10th, 15th ... sample of every label, in the order of the file.

    If samples have owners, mark the 5th, 10th ... sample of every owner, label by label, so that every owner keeps four
    fifths of its samples for training, and an owner of fewer than five keeps them all.
    """
    groups = labels if owners is None else owners
    order = np.lexsort((labels, groups))  # stable: keeps the order of the file within a label
    _, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    rank = np.arange(len(labels)) - np.repeat(starts, sizes)
    chosen = np.zeros(len(labels), dtype=np.bool_)
    chosen[order[rank % 5 == 4]] = True
    return chosen
