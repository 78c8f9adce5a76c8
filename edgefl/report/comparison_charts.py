"""Charts that overlay the curves of several runs: by round, by simulated time, by bytes."""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from edgefl.charts.curves import PERCENT_AXIS, quartiles, round_axis
from edgefl.charts.figure import Figure, layout, line, number
from edgefl.simulation.results import RoundResult
from edgefl.simulation.run_folder import Run
from edgefl.values.formatting import format_number, format_percent

__all__ = ["comparison_charts"]

_MIB = 2**20
_Of = Callable[[RoundResult], float | None]


def comparison_charts(runs: Sequence[Run], names: Sequence[str]) -> tuple[Figure, ...]:
    """Return three charts each for the global accuracy, the devices' own accuracy and the loss."""
    quantities: tuple[tuple[str, str, _Of, Callable[[float | None], str], str, dict[str, Any]], ...] = (
        ("accuracy", "Accuracy of the global model", _accuracy, format_percent, ".1%", {"yaxis": PERCENT_AXIS}),
        ("own", "Median own accuracy of devices", _own_accuracy, format_percent, ".1%", {"yaxis": PERCENT_AXIS}),
        ("loss", "Loss of the global model", _loss, format_number, ".3~g", {}),
    )
    found = []
    for key, title, of, say, form, changes in quantities:
        points = [_points(run, of) for run in runs]
        if not any(points):
            continue
        ends = "; ".join(f"{name} {say(one[-1][3])}" for name, one in zip(names, points, strict=True) if one)
        for place, (axis, words, unit) in enumerate(_AXES):
            lines = [
                line([point[place] for point in one], [point[3] for point in one], name=name, place=order, form=form)
                for order, (name, one) in enumerate(zip(names, points, strict=True))
            ]
            most = max(len(run.rounds) for run in runs)
            found.append(
                Figure(
                    name=f"{key}-{axis}",
                    title=f"{title} {words}",
                    summary=f"Final values: {ends}.",
                    traces=tuple(lines),
                    layout=layout(
                        x=unit,
                        y="",
                        height=300,
                        showlegend=True,
                        hovermode="closest",
                        xaxis=round_axis(most) if axis == "rounds" else {"rangemode": "tozero"},
                        **changes,
                    ),
                )
            )
    return tuple(found)


_AXES = (
    ("rounds", "over rounds", "round"),
    ("time", "over simulated time", "s, simulated"),
    ("bytes", "over bytes", "MiB up and down"),
)


def _points(run: Run, of: _Of) -> list[tuple[float, float, float, float]]:
    """Return (round, simulated seconds so far, MiB so far, value) for each round that has a value."""
    sent = accumulate((result.up_bytes + result.down_bytes) / _MIB for result in run.rounds)
    rows = ((result, total, number(of(result))) for result, total in zip(run.rounds, sent, strict=True))
    return [
        (result.number + 1, result.began_at + result.simulated_seconds, total, value)
        for result, total, value in rows
        if value is not None
    ]


def _accuracy(result: RoundResult) -> float | None:
    return None if result.score is None else result.score.accuracy


def _loss(result: RoundResult) -> float | None:
    return None if result.score is None else result.score.loss


def _own_accuracy(result: RoundResult) -> float | None:
    there = [one.own_accuracy for one in result.devices if one.own_accuracy is not None]
    return quartiles(there)[1] if there else None
