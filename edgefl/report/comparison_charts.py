"""Charts that overlay the curves of several runs: by round, and by every cost."""

from collections.abc import Callable, Sequence
from typing import Any

from edgefl.charts.curves import PERCENT_AXIS, quartiles, round_axis
from edgefl.charts.figure import Figure, layout, line, number
from edgefl.simulation.results import RoundResult
from edgefl.simulation.run_cost import RunCost, costs_of
from edgefl.simulation.run_folder import Run
from edgefl.values.formatting import format_number, format_percent

__all__ = ["comparison_charts"]

_MIB = 2**20
_Of = Callable[[RoundResult], float | None]


def comparison_charts(runs: Sequence[Run], names: Sequence[str]) -> tuple[Figure, ...]:
    """Return charts over every axis for the global accuracy, the devices' own accuracy and the loss."""
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
        ends = "; ".join(f"{name} {say(one[-1][2])}" for name, one in zip(names, points, strict=True) if one)
        for axis, words, unit, position in _AXES:
            lines = [
                line(*_placed(one, position), name=name, place=order, form=form)
                for order, (name, one) in enumerate(zip(names, points, strict=True))
            ]
            if not any(trace["x"] for trace in lines):
                continue  # such as the energy of fleets without power figures
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


_Point = tuple[int, RunCost, float]
"""The number of a round, what had been spent by its end, and a value."""
_AXES: tuple[tuple[str, str, str, Callable[[_Point], float | None]], ...] = (
    ("rounds", "over rounds", "round", lambda point: point[0]),
    ("time", "over simulated time", "s, simulated", lambda point: point[1].seconds),
    ("energy", "over energy", "J, estimated", lambda point: point[1].joules),
    ("up", "over bytes up", "MiB up", lambda point: point[1].up_bytes / _MIB),
    ("bytes", "over bytes", "MiB up and down", lambda point: point[1].total_bytes / _MIB),
)


def _points(run: Run, of: _Of) -> list[_Point]:
    rows = ((result, cost, number(of(result))) for result, cost in zip(run.rounds, costs_of(run.rounds), strict=True))
    return [(result.number + 1, cost, value) for result, cost, value in rows if value is not None]


def _placed(
    points: Sequence[_Point], position: Callable[[_Point], float | None]
) -> tuple[list[float], list[float | None]]:
    """Return the points that have a position on an axis: their positions, and their values."""
    there = [(place, point[2]) for point in points if (place := position(point)) is not None]
    return [place for place, _ in there], [value for _, value in there]


def _accuracy(result: RoundResult) -> float | None:
    return None if result.score is None else result.score.accuracy


def _loss(result: RoundResult) -> float | None:
    return None if result.score is None else result.score.loss


def _own_accuracy(result: RoundResult) -> float | None:
    there = [one.own_accuracy for one in result.devices if one.own_accuracy is not None]
    return quartiles(there)[1] if there else None
