"""Verdicts on claims: held, not held or undecided, from figures of several seeds.

Claims compare means over seeds, in points (hundredths of accuracy). A difference is taken seed by seed, since a seed
gives all methods the same data and initial weights, and has a 95 % confidence interval (Student's t). A claim is
undecided if the interval has room for both answers, and so is every comparison of accuracies that has a single seed.
Bytes and parameters are counted, not drawn: one seed decides.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.accuracy_study.figures import Figures, Value

__all__ = [
    "NotRunError",
    "Ruling",
    "Verdict",
    "above",
    "against",
    "both",
    "no_worse",
    "percent",
    "points",
    "ratio",
    "series_points",
    "value_of",
]


class Ruling(StrEnum):
    """What the figures say of a claim."""

    HELD = "held"
    NOT_HELD = "not held"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A claim, what its paper found, what was found here, and what follows."""

    paper: str
    claim: str
    published: str
    """The figures of the paper; a dash if it has none."""
    figures: str
    ruling: Ruling


class NotRunError(Exception):
    """Something that a claim is about was not run."""


def value_of(figures: Figures, setup: str, label: str, measure: str) -> Value:
    """Return a measure of a strategy. Raise `NotRunError` if there is none."""
    figure = figures.get((setup, label))
    if figure is None or measure not in figure.values:
        raise NotRunError
    return figure.values[measure]


def points(figures: Figures, setup: str, label: str, measure: str) -> Value:
    """Return an accuracy in points."""
    return _in_points(value_of(figures, setup, label, measure))


def series_points(figures: Figures, setup: str, label: str, series: str, place: float) -> Value:
    """Return an accuracy of a series in points."""
    figure = figures.get((setup, label))
    if figure is None or place not in figure.series.get(series, {}):
        raise NotRunError
    return _in_points(figure.series[series][place])


def both(own: Value, other: Value, how: Callable[[float, float], float]) -> Value:
    """Combine two values seed by seed; what was run with no common seed cannot be compared."""
    found = own.with_each(other, how)
    if found is None:
        raise NotRunError
    return found


def above(own: Value, other: Value) -> Ruling:
    """Rule whether one accuracy is above another."""
    return _sign(both(own, other, operator.sub), 0.0)


def no_worse(own: Value, other: Value, margin: float = 1.0) -> Ruling:
    """Rule whether one accuracy is at most `margin` points below another."""
    return _sign(both(own, other, operator.sub), -margin)


def ratio(holds: bool) -> Ruling:
    """Rule on what was counted."""
    return Ruling.HELD if holds else Ruling.NOT_HELD


def against(own: Value, other: Value) -> str:
    """Return two accuracies and their difference, with its interval."""
    difference = both(own, other, operator.sub)
    return f"{own.mean:.1f} against {other.mean:.1f}, {difference.mean:+.1f}{_interval(difference)}"


def percent(less: Value, more: Value) -> str:
    """Return one value as a share of another."""
    share = both(less, more, lambda one, other: 100 * one / other)
    return f"{share.mean:.1f} %"


def _sign(difference: Value, bound: float) -> Ruling:
    half = difference.interval
    if half is None:
        return Ruling.UNDECIDED
    if difference.mean - half > bound:
        return Ruling.HELD
    return Ruling.NOT_HELD if difference.mean + half < bound else Ruling.UNDECIDED


def _in_points(value: Value) -> Value:
    return both(value, value, lambda share, _: 100 * share)


def _interval(value: Value) -> str:
    return "" if value.interval is None else f" ±{value.interval:.1f}"
