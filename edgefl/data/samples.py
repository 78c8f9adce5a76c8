"""Samples: features, labels and optional owners, as immutable arrays.

A `Dataset` has two of these, and `partition` divides the samples of one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.errors import DataError

__all__ = ["Samples", "frozen", "read_only"]

_ROWS_AT_ONCE = 4096


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Mark an array that nobody else can write to as read-only, so that `read_only` does not copy it."""
    array.flags.writeable = False
    return array


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only form of an array: itself if nothing can write to its memory, otherwise a copy."""
    owner: object = array
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    # If no array in the chain of views is writable, it ends in nothing, or in the bytes a file was read into.
    return array if owner is None or isinstance(owner, bytes) else frozen(array.copy())


def _whole_numbers(values: NDArray[Any], what: str, count: int) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise DataError(
            f"The {what} have type {array.dtype}, which is not an integer type",
            fix=f"Give one integer per sample as {what}, for example with .astype('int64')",
        )
    if array.shape != (count,):
        raise DataError(
            f"The {what} have shape {array.shape}, but there are {count} samples",
            fix=f"Give exactly one per sample: the shape must be ({count},)",
        )
    whole = frozen(array.astype(np.int64))
    if count and int(whole.min()) < 0:
        raise DataError(f"One of the {what} is {int(whole.min())}", fix=f"Number the {what} from 0")
    return whole


def _fit_float32(features: NDArray[Any]) -> bool:
    pieces = (features[at : at + _ROWS_AT_ONCE] for at in range(0, len(features), _ROWS_AT_ONCE))
    with np.errstate(over="ignore"):
        return all(np.isfinite(piece.astype(np.float32, copy=False)).all() for piece in pieces)


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Features in their raw type, one label per sample, and optionally its owner.

    An array that could still be written to is copied; see `frozen`.
    """

    features: NDArray[Any]
    labels: NDArray[np.int64]
    owners: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        features = read_only(np.asarray(self.features))
        if features.ndim < 2 or features.dtype.kind not in "buif":
            raise DataError(
                f"The features have type {features.dtype} and shape {features.shape}",
                fix="Give numbers in an array of samples by features, with a shape such as (60000, 1, 28, 28)",
            )
        if features.dtype.kind == "f" and not _fit_float32(features):
            raise DataError(
                "The features contain NaN, infinity, or numbers too large for float32",
                fix="Remove, replace or rescale those samples first",
            )
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "labels", _whole_numbers(self.labels, "labels", len(features)))
        if self.owners is not None:
            object.__setattr__(self, "owners", _whole_numbers(self.owners, "owners", len(features)))

    def __len__(self) -> int:
        return len(self.labels)
