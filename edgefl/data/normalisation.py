"""Normalisation of raw features to float32: scale, subtract the mean, divide by the standard deviation.

A `Dataset` carries one of these and applies it to one batch at a time.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgefl.errors import DataError

__all__ = ["Normalisation"]

_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class Normalisation:
    """`(raw / scale - mean) / std`, with one mean and std for all channels or one per channel (axis 1)."""

    mean: tuple[float, ...]
    std: tuple[float, ...]
    scale: float = 255.0

    def __post_init__(self) -> None:
        numbers = np.array([*self.mean, *self.std, self.scale], dtype=np.float64)
        if not self.mean or len(self.mean) != len(self.std) or not np.isfinite(numbers).all():
            raise DataError(
                f"A normalisation with mean {self.mean}, std {self.std} and scale {self.scale} is not valid",
                fix="Give equally many finite means and standard deviations: one, or one per channel",
            )
        if min(*self.std, self.scale) <= 0:
            raise DataError(
                f"The std {self.std} or the scale {self.scale} of a normalisation is not above 0",
                fix="Use a standard deviation of 1 for a constant channel",
            )

    def apply(self, raw: NDArray[Any]) -> NDArray[np.float32]:
        """Return raw features as normalised float32, in one new array."""
        mean, std = np.array(self.mean), np.array(self.std)
        if len(self.mean) > 1:
            along_channels = (1, -1, *([1] * (raw.ndim - 2)))
            mean, std = mean.reshape(along_channels), std.reshape(along_channels)
        values = raw.astype(np.float32)
        values *= (1.0 / (self.scale * std)).astype(np.float32)
        values -= (mean / std).astype(np.float32)
        return values

    @classmethod
    def measured(cls, features: NDArray[np.uint8], scale: float = 255.0) -> "Normalisation":
        """Return the exact mean and standard deviation of bytes by channel, without a float copy."""
        channels = features.shape[1] if features.ndim > 2 else 1
        counts = np.zeros((channels, 256), dtype=np.int64)
        for at in range(0, len(features), _ROWS_AT_ONCE):
            rows = features[at : at + _ROWS_AT_ONCE].reshape(-1, channels, *features.shape[2:])
            for channel in range(channels):
                counts[channel] += np.bincount(rows[:, channel].ravel(), minlength=256)
        values = np.arange(256) / scale
        mean = counts @ values / counts.sum(axis=1)
        std = np.sqrt(np.maximum(counts @ values**2 / counts.sum(axis=1) - mean**2, 0.0))
        std[std < 1e-9] = 1.0
        return cls(tuple(mean.tolist()), tuple(std.tolist()), scale)
