"""Samples: features, one label each, and where it is known whose they are; arrays that cannot change.

A `Dataset` is made of two of these, and `partition` deals out the samples of one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.errors import DataError

__all__ = ["Samples", "frozen", "read_only"]

_ROWS_AT_ONCE = 4096


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Mark an array that nobody else can write to as read-only, so that `read_only` makes no second copy of it."""
    array.flags.writeable = False
    return array


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only form of an array: itself if nothing can write to its memory any more, and otherwise a copy."""
    owner: object = array
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    # Where no array in the chain of views is writable, it ends in nothing, or in the bytes that a file was read into.
    return array if owner is None or isinstance(owner, bytes) else frozen(array.copy())


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
    whole = frozen(array.astype(np.int64))
    if count and int(whole.min()) < 0:
        raise DataError(f"One of the {what} is {int(whole.min())}", fix=f"Number the {what} from 0 up")
    return whole


def _fit_float32(features: NDArray[Any]) -> bool:
    pieces = (features[at : at + _ROWS_AT_ONCE] for at in range(0, len(features), _ROWS_AT_ONCE))
    with np.errstate(over="ignore"):
        return all(np.isfinite(piece.astype(np.float32, copy=False)).all() for piece in pieces)


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Features in their raw type, one label a sample, and where it is known whose sample it is.

    An array that somebody could still write to is copied; see `frozen`.
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
        if features.dtype.kind == "f" and not _fit_float32(features):
            raise DataError(
                "The features hold NaN, infinity, or numbers too large for the float32 that models take",
                fix="Remove, replace or rescale those samples first",
            )
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "labels", _whole_numbers(self.labels, "labels", len(features)))
        if self.owners is not None:
            object.__setattr__(self, "owners", _whole_numbers(self.owners, "owners", len(features)))

    def __len__(self) -> int:
        return len(self.labels)
