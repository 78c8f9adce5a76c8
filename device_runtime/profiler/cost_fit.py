"""Fits a `CostFit` to measurements: non-negative least squares, with cross-validated errors.

Errors are relative, so a step of a millisecond counts as much as one of a second. Every term is a cost and cannot be
negative: with so few terms, trying every subset of them finds the best such fit. The reported error is that of
predictions for what was left out of the fit: one mask at a time, or one model at a time if several were measured,
because then the fit is for models that it has not seen.
"""

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from edgefl.errors import EdgeFLError
from edgefl.values import CostFit

__all__ = [
    "FEWEST_GROUPS",
    "MEMORY_TERMS",
    "TIME_TERMS",
    "CostSample",
    "fit_cost",
    "fitted",
    "least_squares",
    "left_out_errors",
]

Floats = npt.NDArray[np.float64]

FEWEST_GROUPS = 3
"""With fewer groups, leaving one out leaves too little to fit."""

_PASSES = ("forward_multiply_adds", "backward_multiply_adds")
TIME_TERMS = (*_PASSES, "activation_bytes", "trained_parameters")
MEMORY_TERMS = ("activation_bytes", "parameter_bytes", "trained_parameters")
_APART = 1.2
"""Passes can be told apart if the ratio of their work differs by this factor among the measurements."""


@dataclass(frozen=True, slots=True)
class CostSample:
    """The measured cost of a step of one mask, in seconds or bytes."""

    group: str
    """Measurements of one group are left out together."""
    work: Mapping[str, int]
    """The work of the step, see `work_of`."""
    amount: float


def fit_cost(times: Sequence[CostSample], peaks: Sequence[CostSample], *, measured_on: str) -> CostFit:
    """Fit a device's cost to step times and memory peaks."""
    if len({time.group for time in times}) < FEWEST_GROUPS or not peaks:
        raise EdgeFLError(
            f"only {len(times)} steps and {len(peaks)} memory peaks could be measured in time, too few for a fit",
            fix="Give more time with --seconds, a smaller model with --bundle, or stop what else runs here.",
        )
    overhead, forward, backward, activation, parameter = fitted(times, TIME_TERMS)
    base, by_activation, by_parameter, by_trained = fitted(peaks, MEMORY_TERMS)
    memory_errors = left_out_errors(peaks, MEMORY_TERMS)
    return CostFit(
        overhead_seconds=overhead,
        forward_seconds_per_multiply_add=forward,
        backward_seconds_per_multiply_add=backward,
        seconds_per_activation_byte=activation,
        seconds_per_trained_parameter=parameter,
        memory_base_bytes=round(base),
        memory_bytes_per_activation_byte=by_activation,
        memory_bytes_per_parameter_byte=by_parameter,
        memory_bytes_per_trained_parameter=by_trained,
        relative_error=statistics.median(left_out_errors(times, TIME_TERMS)),
        memory_relative_error=statistics.median(memory_errors) if memory_errors else None,
        measurements=len(times),
        measured_on=measured_on,
    )


def left_out_errors(measured: Sequence[CostSample], terms: Sequence[str]) -> list[float]:
    """Return the relative error of every measurement, predicted from the other groups alone."""
    groups = dict.fromkeys(one.group for one in measured)
    if len(groups) < FEWEST_GROUPS:
        return []
    errors = []
    for group in groups:
        factors = np.array(fitted([one for one in measured if one.group != group], terms))
        left_out = [one for one in measured if one.group == group]
        errors += [float(abs(_features(one, terms) @ factors / one.amount - 1)) for one in left_out]
    return errors


def fitted(measured: Sequence[CostSample], terms: Sequence[str]) -> list[float]:
    """Return the constant and the factor of every term. Divided by its amount, every measurement should be 1."""
    features = np.array([_features(one, terms) / one.amount for one in measured])
    if not _passes_look_alike(measured, terms):
        return _listed(least_squares(features, np.ones(len(measured))))
    # Forward and backward grow together, so their times cannot be separated: they share one factor.
    forward, backward = (1 + terms.index(name) for name in _PASSES)
    features[:, forward] += features[:, backward]
    features[:, backward] = 0
    factors = least_squares(features, np.ones(len(measured)))
    factors[backward] = factors[forward]
    return _listed(factors)


def least_squares(features: Floats, wanted: Floats) -> Floats:
    """Return the non-negative factors for which the weighted sum of the columns is nearest to `wanted`."""
    scale = np.linalg.norm(features, axis=0)
    used = np.flatnonzero(scale > 0)
    best, smallest = np.zeros(features.shape[1]), float(wanted @ wanted)
    for count in range(1, len(used) + 1):
        for subset in map(list, itertools.combinations(used, count)):
            columns = features[:, subset] / scale[subset]
            factors = np.linalg.lstsq(columns, wanted, rcond=None)[0]
            error = float(((columns @ factors - wanted) ** 2).sum())
            if np.all(factors >= 0) and error < smallest:
                best, smallest = np.zeros(features.shape[1]), error
                best[subset] = factors / scale[subset]
    return best


def _passes_look_alike(measured: Sequence[CostSample], terms: Sequence[str]) -> bool:
    if not set(_PASSES) <= set(terms):
        return False
    forward, backward = _PASSES
    ratios = [one.work[backward] / max(1, one.work[forward]) for one in measured]
    return max(ratios) < _APART * min(ratios)


def _features(one: CostSample, terms: Sequence[str]) -> Floats:
    return np.array([1.0, *(one.work[term] for term in terms)])


def _listed(factors: Floats) -> list[float]:
    return [float(factor) for factor in factors]
