"""The sums that devices send for an exact head, from strangers: checked, read, and bounded in what each counts for."""

import math
from collections.abc import Iterator

import numpy as np

from edgefl.errors import WireFormatError
from edgefl.local_rules.feature_sums import GRAM, PRODUCTS, SQUARES
from edgefl.strategies.head_fit import Doubles, Moments
from edgefl.strategies.sample_counts import MOST_TIMES_MEDIAN, claims_of, sample_cap
from edgefl.strategies.strategy import ClientUpdate, ClientUpdates
from edgefl.wire import Dense

__all__ = [
    "are_classes",
    "check_sums",
    "counted_samples",
    "device_moments",
    "largest_gradient",
    "samples_summed",
    "sum_array",
]


def device_moments(updates: ClientUpdates, batch: int) -> Iterator[Moments]:
    """Yield the sums of the devices that have samples, each for as many as it may count for.

    Features and targets come from strangers too: those of a device whose mean square is beyond a multiple of the
    median's count for less, as its samples do.
    """
    counted = counted_samples(updates)
    scales = [_scales(update, batch) if weight else (0.0, 0.0) for update, weight in zip(updates, counted, strict=True)]
    most = [sample_cap(values, MOST_TIMES_MEDIAN) for values in zip(*scales, strict=True)]
    for update, weight, scale in zip(updates, counted, scales, strict=True):
        if weight:
            larger = max((own / cap for own, cap in zip(scale, most, strict=True) if own > cap), default=1.0)
            yield _sums_of(update, batch).times(weight / samples_summed(update, batch) / larger)


def samples_summed(update: ClientUpdate, batch: int) -> int:
    """Return how many samples the sums of a device are of: all of its own, or what it had time for."""
    return max(min(update.result.samples, update.result.steps * batch), 1)


def _scales(update: ClientUpdate, batch: int) -> tuple[float, float]:
    """Return the mean square of a sample's features, and of its targets."""
    sums = _sums_of(update, batch)
    samples = sums.samples
    return float(np.trace(sums.gram)) / samples, float(sums.squares.sum()) / samples


def _sums_of(update: ClientUpdate, batch: int) -> Moments:
    return Moments.of_triangle(
        sum_array(update, GRAM), sum_array(update, PRODUCTS), sum_array(update, SQUARES), samples_summed(update, batch)
    )


def counted_samples(updates: ClientUpdates) -> list[float]:
    """Return how many samples each update counts for."""
    claims = claims_of(updates)
    most = sample_cap(claims, MOST_TIMES_MEDIAN)
    return [float(min(claim, most)) for claim in claims]


def largest_gradient(known: Moments) -> float:
    """Return the norm of the largest mean gradient that features of the size of all devices' can have, and a multiple.

    A sample's is |h| |p - y|, and the second is at most the root of 2.
    """
    return math.sqrt(2 * MOST_TIMES_MEDIAN * float(np.trace(known.gram)) / max(known.samples, 1.0))


def sum_array(update: ClientUpdate, name: str) -> Doubles:
    """Return a payload of sums as an array."""
    payload = update.tensors[name]
    if not isinstance(payload, Dense):
        raise WireFormatError(f"payload {name!r} is not dense", fix="Send it as the plan's document says.")
    return np.asarray(payload.array, np.float64)


def are_classes(moments: Moments) -> bool:
    """Return whether the targets are zeros and a one: then their squares sum up to the number of samples."""
    return bool(np.isclose(moments.squares.sum(), moments.samples, rtol=1e-6))


def check_sums(update: ClientUpdate) -> None:
    """Refuse sums that no samples have: of squares below zero, or of products above what squares allow."""
    sums = _sums_of(update, 1)
    slack = 1.0 + 1e-6
    diagonal = np.diag(sums.gram)
    if (diagonal < 0).any() or (sums.squares < 0).any():
        problem = "a sum of squares is negative"
    elif (sums.gram**2 > slack * np.outer(diagonal, diagonal)).any():
        problem = "a sum of products is larger than those of the squares allow"
    elif (sums.products**2 > slack * np.outer(diagonal, sums.squares)).any():
        problem = "a sum of features and labels is larger than those of the squares allow"
    else:
        return
    raise WireFormatError(f"the update is not of samples: {problem}", fix="Send the sums of the rule 'feature_sums'.")
