"""A run over its rounds: the global model, the devices' own ones, and what every round cost."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from edgefl.report.figure import Figure, band, bars, layout, line, number
from edgefl.report.words import joules, ordinary, seconds, share, size
from edgefl.simulation.results import DeviceRound, Fate, RoundResult

__all__ = ["PERCENT_AXIS", "curves", "quartiles", "round_axis"]

PERCENT_AXIS = {"tickformat": ".0%", "range": [0, 1.02]}

_MIB = 2**20
_MOST_TICKS = 10
_FATES = {
    Fate.ARRIVED: "var(--good)",
    Fate.LATE: "var(--warn)",
    Fate.LOST: "var(--bad)",
    Fate.REFUSED: "var(--neutral)",
}
_Rounds = Sequence[RoundResult]
_Say = Callable[[float | None], str]


def curves(rounds: _Rounds) -> tuple[Figure, ...]:
    """Return every curve for which there is something to draw."""
    makers = (_accuracy, _loss, _own_accuracy, _training_loss, _traffic, _energy, _time, _fates)
    return tuple(figure for figure in (make(rounds) for make in makers) if figure is not None)


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile."""
    low, middle, high = np.quantile(np.asarray(values, float), (0.25, 0.5, 0.75))
    return float(low), float(middle), float(high)


def _accuracy(rounds: _Rounds) -> Figure | None:
    scored = [(result.number + 1, result.score.accuracy) for result in rounds if result.score is not None]
    if not scored:
        return None
    xs, ys = zip(*scored, strict=True)
    best = max(scored, key=lambda point: point[1])
    return Figure(
        name="accuracy",
        title="Accuracy of the global model",
        summary=f"From {share(ys[0])} after round {xs[0]} to {share(ys[-1])} after round {xs[-1]}; "
        f"best {share(best[1])}, after round {best[0]}. On the published test samples.",
        traces=(line(xs, ys, name="global model", form=".1%"),),
        layout=_over_rounds(rounds, "accuracy", yaxis=PERCENT_AXIS),
    )


def _loss(rounds: _Rounds) -> Figure | None:
    scored = [(result.number + 1, number(result.score.loss)) for result in rounds if result.score is not None]
    if not scored:
        return None
    xs, ys = zip(*scored, strict=True)
    return Figure(
        name="loss",
        title="Loss of the global model",
        summary=f"Mean cross-entropy on the published test samples: {_from_to(ys, ordinary)}.",
        traces=(line(xs, ys, name="global model"),),
        layout=_over_rounds(rounds, "cross-entropy"),
    )


def _own_accuracy(rounds: _Rounds) -> Figure | None:
    return _spread(
        rounds,
        lambda one: one.own_accuracy,
        name="own-accuracy",
        title="Accuracy of devices' own models",
        axis="accuracy",
        what="Each device on its own test samples, right after its training",
        say=share,
        form=".1%",
        yaxis=PERCENT_AXIS,
    )


def _training_loss(rounds: _Rounds) -> Figure | None:
    return _spread(
        rounds,
        lambda one: one.loss if one.steps else None,
        name="training-loss",
        title="Training loss on devices",
        axis="loss",
        what="Each device's mean over its last pass",
        say=ordinary,
    )


def _spread(
    rounds: _Rounds,
    of: Callable[[DeviceRound], float | None],
    *,
    name: str,
    title: str,
    axis: str,
    what: str,
    say: _Say,
    form: str = ".3~g",
    **changes: Any,
) -> Figure | None:
    """Draw the median over devices, and between which values half of them are."""
    points = []
    for result in rounds:
        there = [value for value in (number(of(one)) for one in result.devices) if value is not None]
        if there:
            points.append((result.number + 1, *quartiles(there)))
    if not points:
        return None
    xs, low, middle, high = zip(*points, strict=True)
    return Figure(
        name=name,
        title=title,
        summary=f"{what}. Median {_from_to(middle, say)}; in the last round half of the devices are between "
        f"{say(low[-1])} and {say(high[-1])}.",
        traces=(*band(xs, low, high, name="middle half of devices"), line(xs, middle, name="median", form=form)),
        layout=_over_rounds(rounds, axis, showlegend=True, **changes),
    )


def _traffic(rounds: _Rounds) -> Figure | None:
    if not rounds:
        return None
    up, down = [result.up_bytes for result in rounds], [result.down_bytes for result in rounds]
    return Figure(
        name="traffic",
        title="Bytes up and down",
        summary=f"All devices of a round: {size(sum(up) / len(up))} up and {size(sum(down) / len(down))} down on "
        "average, headers included, graphs not.",
        traces=(
            line(_numbers(rounds), [one / _MIB for one in up], name="up"),
            line(_numbers(rounds), [one / _MIB for one in down], name="down", place=1),
        ),
        layout=_over_rounds(rounds, "MiB", showlegend=True),
    )


def _energy(rounds: _Rounds) -> Figure | None:
    known = [(result.number + 1, result.joules) for result in rounds if result.joules is not None]
    if not known:
        return None
    xs, ys = zip(*known, strict=True)
    return Figure(
        name="energy",
        title="Energy",
        summary=f"All devices of a round: {joules(sum(ys) / len(ys))} on average. Estimated by device class.",
        traces=(line(xs, ys, name="estimated joules"),),
        layout=_over_rounds(rounds, "J, estimated"),
    )


def _time(rounds: _Rounds) -> Figure | None:
    if not rounds:
        return None
    whole = [result.simulated_seconds for result in rounds]
    middle = [
        quartiles([one.simulated_seconds for one in result.devices])[1] if result.devices else None for result in rounds
    ]
    return Figure(
        name="time",
        title="Simulated time of a round",
        summary=f"{seconds(sum(whole) / len(whole))} on average, {seconds(max(whole))} at the most: until the last "
        "device is back, or until the deadline. Simulated by device class.",
        traces=(
            line(_numbers(rounds), whole, name="the round"),
            line(_numbers(rounds), middle, name="median device", place=1),
        ),
        layout=_over_rounds(rounds, "s, simulated", showlegend=True),
    )


def _fates(rounds: _Rounds) -> Figure | None:
    counts = {fate: [sum(one.fate is fate for one in result.devices) for result in rounds] for fate in Fate}
    there = {fate: row for fate, row in counts.items() if any(row)}
    if not there:
        return None
    told = ", ".join(f"{sum(row):,} {fate.value}" for fate, row in counts.items())
    return Figure(
        name="fates",
        title="What became of tasks",
        summary=f"Over all rounds: {told}.",
        traces=tuple(bars(_numbers(rounds), row, name=fate.value, colour=_FATES[fate]) for fate, row in there.items()),
        layout=_over_rounds(rounds, "tasks", barmode="stack", bargap=0.25, showlegend=True),
    )


def _over_rounds(rounds: _Rounds, y: str, **changes: Any) -> dict[str, Any]:
    return layout(x="round", y=y, xaxis=round_axis(len(rounds)), **changes)


def round_axis(rounds: int) -> dict[str, Any]:
    """Return an axis whose ticks are round numbers of rounds, and not more than are readable."""
    steps = (digit * 10**power for power in itertools.count() for digit in (1, 2, 5))
    return {"tick0": 0, "dtick": next(step for step in steps if rounds <= _MOST_TICKS * step), "tickformat": ",d"}


def _numbers(rounds: _Rounds) -> list[int]:
    return [result.number + 1 for result in rounds]


def _from_to(values: Sequence[float | None], say: _Say) -> str:
    return f"from {say(values[0])} to {say(values[-1])}"
