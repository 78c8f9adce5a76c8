"""Curves over rounds, from plain numbers, for finished runs and running federations.

Rounds are counted from 1 here. The caller says whether the numbers are measured, estimated or simulated.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from edgefl.charts.figure import Figure, band, bars, layout, line, number
from edgefl.values.formatting import (
    format_bytes,
    format_joules,
    format_number,
    format_part,
    format_percent,
    format_seconds,
)

__all__ = [
    "PERCENT_AXIS",
    "Points",
    "Quartiles",
    "Spread",
    "accuracy_curve",
    "energy_curve",
    "fates_chart",
    "loss_curve",
    "own_accuracy_curve",
    "quartiles",
    "round_axis",
    "spread_of",
    "time_curve",
    "traffic_curve",
    "training_loss_curve",
]

PERCENT_AXIS = {"tickformat": ".0%", "range": [0, 1.02]}
Points = Sequence[tuple[int, float]]
"""Rounds and their values."""
Quartiles = tuple[float, float, float]
"""The lower quartile, the median and the upper quartile."""
Spread = Sequence[tuple[int, Quartiles]]
"""Rounds, and the quartiles over devices in each."""

_MIB = 2**20
_MOST_TICKS = 10
_FATE_COLOURS = {
    "arrived": "var(--good)",
    "late": "var(--warn)",
    "lost": "var(--bad)",
    "refused": "var(--neutral)",
}
_Say = Callable[[float | None], str]


def quartiles(values: Sequence[float]) -> Quartiles:
    """Return the lower quartile, the median and the upper quartile."""
    low, middle, high = np.quantile(np.asarray(values, float), (0.25, 0.5, 0.75))
    return float(low), float(middle), float(high)


def spread_of(values: Sequence[tuple[int, Sequence[float | None]]]) -> Spread:
    """Return the quartiles of each round's values; rounds without values are left out."""
    there = ((place, [one for one in map(number, several) if one is not None]) for place, several in values)
    return [(place, quartiles(several)) for place, several in there if several]


def accuracy_curve(points: Points, *, rounds: int, on: str, judged: float | None = None) -> Figure | None:
    """Draw the accuracy of the global model; `on` names the samples, and `judged` is the fraction judged at the end."""
    if not points:
        return None
    xs, ys = zip(*points, strict=True)
    best = max(points, key=lambda point: point[1])
    part = format_part(judged)
    told = part and f" Judged{part} in the end: the part that devices hold."
    return Figure(
        name="accuracy",
        title="Accuracy of the global model",
        summary=f"From {format_percent(ys[0])} after round {xs[0]} to {format_percent(ys[-1])} after round {xs[-1]}; "
        f"best {format_percent(best[1])}, after round {best[0]}. On {on}.{told}",
        traces=(line(xs, ys, name="global model", form=".1%"),),
        layout=_over_rounds(rounds, "accuracy", yaxis=PERCENT_AXIS),
    )


def loss_curve(points: Sequence[tuple[int, float | None]], *, rounds: int, on: str) -> Figure | None:
    """Draw the loss of the global model; it has no value where training diverged."""
    points = [(place, value) for place, value in points if value is not None]
    if not points:
        return None
    xs, ys = zip(*((place, number(value)) for place, value in points), strict=True)
    return Figure(
        name="loss",
        title="Loss of the global model",
        summary=f"Mean cross-entropy on {on}: {_from_to(ys, format_number)}.",
        traces=(line(xs, ys, name="global model"),),
        layout=_over_rounds(rounds, "cross-entropy"),
    )


def own_accuracy_curve(values: Spread, *, rounds: int) -> Figure | None:
    """Draw the accuracy of the devices' own models after training."""
    return _spread(
        values,
        rounds,
        name="own-accuracy",
        title="Accuracy of devices' own models",
        axis="accuracy",
        what="Each device on its own test samples, right after its training",
        say=format_percent,
        form=".1%",
        yaxis=PERCENT_AXIS,
    )


def training_loss_curve(values: Spread, *, rounds: int) -> Figure | None:
    """Draw the devices' training loss."""
    return _spread(
        values,
        rounds,
        name="training-loss",
        title="Training loss on devices",
        axis="loss",
        what="Each device's mean over its last pass",
        say=format_number,
    )


def _spread(
    values: Spread,
    rounds: int,
    *,
    name: str,
    title: str,
    axis: str,
    what: str,
    say: _Say,
    form: str = ".3~g",
    **changes: Any,
) -> Figure | None:
    """Draw the median and the interquartile range over devices."""
    if not values:
        return None
    xs, low, middle, high = zip(*((place, *one) for place, one in values), strict=True)
    return Figure(
        name=name,
        title=title,
        summary=f"{what}. Median {_from_to(middle, say)}; in the last round half of the devices are between "
        f"{say(low[-1])} and {say(high[-1])}.",
        traces=(*band(xs, low, high, name="middle half of devices"), line(xs, middle, name="median", form=form)),
        layout=_over_rounds(rounds, axis, showlegend=True, **changes),
    )


def traffic_curve(places: Sequence[int], up: Sequence[int], down: Sequence[int], *, counted: str) -> Figure | None:
    """Draw the traffic of rounds; `counted` says which bytes are included."""
    if not places:
        return None
    return Figure(
        name="traffic",
        title="Bytes up and down",
        summary=f"All devices of a round: {format_bytes(sum(up) / len(up))} up and "
        f"{format_bytes(sum(down) / len(down))} down on average, {counted}.",
        traces=(
            line(places, [one / _MIB for one in up], name="up"),
            line(places, [one / _MIB for one in down], name="down", place=1),
        ),
        layout=_over_rounds(len(places), "MiB", showlegend=True),
    )


def energy_curve(points: Points, *, rounds: int, label: str, source: str) -> Figure | None:
    """Draw the energy of rounds; `label` is one word for its provenance, `source` a sentence."""
    if not points:
        return None
    xs, ys = zip(*points, strict=True)
    return Figure(
        name="energy",
        title="Energy",
        summary=f"All devices of a round: {format_joules(sum(ys) / len(ys))} on average. {source}",
        traces=(line(xs, ys, name=f"{label} joules"),),
        layout=_over_rounds(rounds, f"J, {label}"),
    )


def time_curve(
    places: Sequence[int], whole: Sequence[float], middle: Sequence[float | None], *, label: str, source: str
) -> Figure | None:
    """Draw the duration of rounds, and of the median device in each."""
    if not places:
        return None
    return Figure(
        name="time",
        title=f"{label.capitalize()} time of a round",
        summary=f"{format_seconds(sum(whole) / len(whole))} on average, {format_seconds(max(whole))} at most: "
        f"until the last device is back, or until the deadline. {source}",
        traces=(line(places, whole, name="the round"), line(places, middle, name="median device", place=1)),
        layout=_over_rounds(len(places), f"s, {label}", showlegend=True),
    )


def fates_chart(places: Sequence[int], counts: Mapping[str, Sequence[int]]) -> Figure | None:
    """Draw how many tasks of each round had each outcome."""
    there = {fate: row for fate, row in counts.items() if any(row)}
    if not there:
        return None
    told = ", ".join(f"{sum(row):,} {fate}" for fate, row in counts.items())
    return Figure(
        name="fates",
        title="Outcome of tasks",
        summary=f"Over all rounds: {told}.",
        traces=tuple(bars(places, row, name=fate, colour=_FATE_COLOURS[fate]) for fate, row in there.items()),
        layout=_over_rounds(len(places), "tasks", barmode="stack", bargap=0.25, showlegend=True),
    )


def _over_rounds(rounds: int, y: str, **changes: Any) -> dict[str, Any]:
    """Return the layout of a chart over rounds."""
    return layout(x="round", y=y, xaxis=round_axis(rounds), **changes)


def round_axis(rounds: int) -> dict[str, Any]:
    """Return an axis with a readable number of ticks at round numbers."""
    steps = (digit * 10**power for power in itertools.count() for digit in (1, 2, 5))
    return {"tick0": 0, "dtick": next(step for step in steps if rounds <= _MOST_TICKS * step), "tickformat": ",d"}


def _from_to(values: Sequence[float | None], say: _Say) -> str:
    return f"from {say(values[0])} to {say(values[-1])}"
