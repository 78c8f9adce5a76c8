"""The sums that devices send for an exact head, from strangers: checked, read, and bounded in what each counts for."""

import math
from collections.abc import Iterator

import numpy as np

from edgefl.errors import WireFormatError
from edgefl.local_rules import FeatureSums, HeadGradients, head_of, rule_of
from edgefl.local_rules.feature_sums import GRAM, PRODUCTS, SQUARES
from edgefl.strategies.head_fit import Doubles, Moments
from edgefl.strategies.sample_counts import MOST_TIMES_MEDIAN, claims_of, sample_cap
from edgefl.strategies.strategy import ClientUpdate, ClientUpdates
from edgefl.strategies.update_checks import LARGEST
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


def samples_summed(update: ClientUpdate, batch: int) -> float:
    """Return how many samples the sums of a device are of: all of its own, or what it had time for.

    Sums with the 1 of a bias say it themselves, unless there is noise on them.
    """
    said = float(update.tensors[GRAM].array[-1]) if _counts_itself(update) else math.inf  # type: ignore[union-attr]
    return max(min(update.result.samples, update.result.steps * batch, said), 1)


def _counts_itself(update: ClientUpdate) -> bool:
    rule = rule_of(update.rule)
    return isinstance(rule, FeatureSums) and not rule.noise and head_of(update.mask).bias is not None


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

    A sample's is |h| |p - y|, and the second is at most the root of 2. It is above 0 whatever noise made of the sums.
    """
    mean_square = max(float(np.trace(known.gram)), 0.0) / max(known.samples, 1.0)
    return math.sqrt(2 * MOST_TIMES_MEDIAN * mean_square) + float(np.finfo(np.float32).tiny)


def sum_array(update: ClientUpdate, name: str) -> Doubles:
    """Return a payload of sums as an array."""
    payload = update.tensors[name]
    if not isinstance(payload, Dense):
        raise WireFormatError(f"payload {name!r} is not dense", fix="Send it as the plan's document says.")
    return np.asarray(payload.array, np.float64)


def are_classes(updates: ClientUpdates, outputs: int) -> bool:
    """Return whether the targets of most devices are zeros and a one: then their squares count samples by class.

    Sums with noise are of classes: its size is for nothing else.
    """
    if outputs < 2:
        return False
    votes = [_counts_classes(update) for update in updates if update.result.samples]
    return 2 * sum(votes) > len(votes)


def _counts_classes(update: ClientUpdate) -> bool:
    rule, squares = rule_of(update.rule), sum_array(update, SQUARES)
    if isinstance(rule, FeatureSums) and rule.noise:
        return True
    return bool((squares == np.rint(squares)).all() and squares.sum() <= update.result.samples)


def check_sums(update: ClientUpdate) -> None:
    """Refuse sums that no samples have: squares below zero, products above what squares allow, beyond bounds."""
    problem = _problem(update)
    if problem is not None:
        raise WireFormatError(f"the update is not of samples: {problem}", fix="Send the sums that the plan asks for.")


def _problem(update: ClientUpdate) -> str | None:
    rule = rule_of(update.rule)
    largest = max(float(np.abs(sum_array(update, name)).max(initial=0.0)) for name in update.tensors)
    if largest > LARGEST:
        return f"it holds a number beyond {LARGEST:g}"
    if not isinstance(rule, FeatureSums | HeadGradients):
        return None
    bounded = [name for name in update.tensors if rule.noise or name not in (PRODUCTS, SQUARES)]
    most = max(float(np.abs(sum_array(update, name)).max(initial=0.0)) for name in bounded)
    if rule.clip is not None and most > rule.largest_sum(update.result.samples):
        return f"it holds {most:g}, more than its samples can have with features of at most {rule.clip:g}"
    if rule.noise or isinstance(rule, HeadGradients):
        return None
    sums = _sums_of(update, 1)
    roots = np.sqrt(np.maximum(np.diag(sums.gram), 0.0))
    slack = 1.0 + 1e-6
    if (np.diag(sums.gram) < 0).any() or (sums.squares < 0).any():
        return "a sum of squares is negative"
    if (np.abs(sums.gram) > slack * np.outer(roots, roots)).any():
        return "a sum of products is larger than those of the squares allow"
    if (np.abs(sums.products) > slack * np.outer(roots, np.sqrt(sums.squares))).any():
        return "a sum of features and labels is larger than those of the squares allow"
    if head_of(update.mask).bias is not None and not 0 <= sums.gram[-1, -1] <= update.result.samples:
        return f"its sums count {sums.gram[-1, -1]:g} samples, but it has {update.result.samples}"
    return None
