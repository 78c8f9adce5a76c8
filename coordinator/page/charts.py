"""The charts of a federation: over its rounds, of its masks, of one device. `edgefl.charts` draws them.

Curves are drawn from the reports of rounds (`coordinator.rounds.report`), however many tasks they had.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coordinator.federations.lifecycle import existing
from coordinator.rounds.context import Context
from coordinator.rounds.report import read_report
from coordinator.storage.records import Federation, Round, RoundState, Task, TaskState, name_of
from edgefl.charts import DevicePart, Figure, part_of
from edgefl.charts.coverage import coverage_chart
from edgefl.charts.curves import (
    Quartiles,
    accuracy_curve,
    energy_curve,
    fates_chart,
    loss_curve,
    own_accuracy_curve,
    quartiles,
    time_curve,
    traffic_curve,
    training_loss_curve,
)
from edgefl.charts.figure import layout, line
from edgefl.charts.heatmaps import channel_heatmaps, layer_heatmap
from edgefl.federation.cache import LruCache
from edgefl.planning.freezing.bias import bias_of
from edgefl.values import ClientPlan, loads
from edgefl.values.formatting import pluralise

__all__ = ["Charts", "chart"]

_MOST_PARTS = 1000
"""The most devices of a round whose masks are drawn."""
_OTHERWISE = {TaskState.LATE: "late", TaskState.EXPIRED: "lost", TaskState.REFUSED: "refused"}
_TESTED_ON = "the coordinator's test samples"
_MIB = 2**20


def chart(figure: Figure) -> dict[str, Any]:
    """Return a chart in the form that the page gets."""
    return {
        "name": figure.name,
        "title": figure.title,
        "summary": figure.summary,
        "key": [list(pair) for pair in figure.key],
        "height": figure.layout["height"],
        "spec": figure.spec(),
    }


class Charts:
    """Draws charts, and caches the last pictures of masks."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._pictures: LruCache[Any, tuple[list[DevicePart], list[dict[str, Any]]]] = LruCache(4)

    def rounds(self, name: str) -> list[dict[str, Any]]:
        """Return every curve that has something to draw."""
        count = self._context.repository.settings(existing(self._context, name)).rounds.count
        done = [one for one in self._context.store.rounds.of(name, state=RoundState.DONE) if one.number < count]
        figures = _curves(done, self._context.store.tasks.counts_by_round(name))
        return [chart(figure) for figure in figures if figure is not None]

    def masks(self, name: str) -> dict[str, Any]:
        """Return pictures of the latest round's submodels, and figures about its plan."""
        federation = existing(self._context, name)
        latest = self._context.store.rounds.latest(name)
        last = self._context.repository.settings(federation).rounds.count - 1
        if latest is not None and latest.number > last:  # the personal round: nothing was planned together
            latest = self._context.store.rounds.get(name, last)
        if latest is None:
            return {"round": None, "devices": 0, "plan": [], "notes": [], "charts": []}
        tasks = self._context.store.tasks.of(name, number=latest.number)
        tasks = list({task.device: task for task in tasks}.values())
        key = (name, latest.number, latest.attempt, len(tasks))
        parts, pictures = self._pictures.get(key, lambda: self._drawn(federation, tasks[:_MOST_PARTS]))
        notes = []
        if len(tasks) > _MOST_PARTS:
            notes.append(f"Only the first {_MOST_PARTS:,} of the {len(tasks):,} devices of the round are counted.")
        return {
            "round": latest.number,
            "devices": len(tasks),
            "plan": _plan(latest, parts, self._samples(name)),
            "notes": notes,
            "charts": pictures,
        }

    def device(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return charts of what was predicted and measured for a device's tasks; rows are those of its history."""
        figures = (
            _against(rows, "step_seconds", 1e3, "step", "Time of a training step", "ms"),
            _against(rows, "peak_bytes", 1 / _MIB, "memory", "Peak memory", "MiB"),
            _against(rows, "joules", 1.0, "joules", "Energy of a round", "J"),
        )
        return [chart(figure) for figure in figures if figure is not None]

    def _drawn(self, federation: Federation, tasks: Sequence[Task]) -> tuple[list[DevicePart], list[dict[str, Any]]]:
        parts = self._parts(federation, tasks)
        figures = (layer_heatmap(parts), coverage_chart(parts), *channel_heatmaps(parts))
        return parts, [chart(figure) for figure in figures if figure is not None]

    def _parts(self, federation: Federation, tasks: Sequence[Task]) -> list[DevicePart]:
        graph = self._context.repository.bundle(federation).graph
        repository, parts = self._context.repository, []
        for task in tasks:
            body = loads(ClientPlan, task.plan).mask_body
            if body is None or self._context.blobs.size(body) is not None:  # masks of an older round may be deleted
                parts.append(part_of(name_of(task.device), repository.mask(graph, body)))
        return parts

    def _samples(self, name: str) -> dict[str, int]:
        return {pulse.name: pulse.samples or 1 for pulse in self._context.store.devices.pulses(name)}


def _curves(done: Sequence[Round], fates: Mapping[int, Mapping[TaskState, int]]) -> tuple[Figure | None, ...]:
    count, places = len(done), [one.number + 1 for one in done]
    reports = [(one.number + 1, read_report(one.report) or {}) for one in done]
    scored = [(place, report) for place, report in reports if report.get("accuracy") is not None]
    known = {word for _, report in reports for word in report.get("energy_known", ())}
    middle = [report.get("seconds_quartiles") for _, report in reports]
    return (
        accuracy_curve(
            [(place, report["accuracy"]) for place, report in scored],
            rounds=count,
            on=_TESTED_ON,
            judged=scored[-1][1].get("judged_fraction") if scored else None,
        ),
        loss_curve([(place, report["test_loss"]) for place, report in scored], rounds=count, on=_TESTED_ON),
        own_accuracy_curve(_spread(reports, "accuracy_quartiles"), rounds=count),
        training_loss_curve(_spread(reports, "loss_quartiles"), rounds=count),
        traffic_curve(
            places,
            [report["up_bytes"] for _, report in reports],
            [report["down_bytes"] for _, report in reports],
            counted="as devices counted what they sent and received, headers included",
        ),
        energy_curve(
            [(place, report["joules"]) for place, report in reports if report.get("joules") is not None],
            rounds=count,
            label=" or ".join(sorted(known, reverse=True)),
            source="As reported by devices; each says whether it was measured or estimated, and how.",
        ),
        time_curve(
            places,
            [(one.done_at or one.opened_at) - one.opened_at for one in done],
            [None if one is None else one[1] for one in middle],
            label="measured",
            source="Measured by the coordinator, and by the devices.",
        ),
        fates_chart(places, _fates(reports, [fates.get(one.number, {}) for one in done])),
    )


def _spread(reports: Sequence[tuple[int, Mapping[str, Any]]], name: str) -> list[tuple[int, Quartiles]]:
    """Return the quartiles in the reports of rounds; older reports have none."""
    known = ((place, report.get(name)) for place, report in reports)
    return [(place, (one[0], one[1], one[2])) for place, one in known if one is not None]


def _fates(
    reports: Sequence[tuple[int, Mapping[str, Any]]], states: Sequence[Mapping[TaskState, int]]
) -> dict[str, list[int]]:
    """Count how tasks ended. An update counts in the round that aggregated it."""
    return {
        "arrived": [report.get("updates", 0) for _, report in reports],
        **{word: [one.get(state, 0) for one in states] for state, word in _OTHERWISE.items()},
    }


def _plan(latest: Round, parts: Sequence[DevicePart], samples: Mapping[str, int]) -> list[tuple[str, str, str]]:
    """Return the figures about a plan: name, value, and meaning."""
    if not parts or not parts[0].layers:
        return []
    reported: Mapping[str, float] = json.loads(latest.plan or "{}")
    trained = np.array([[layer.trained for layer in part.layers] for part in parts], np.bool_)
    covered = trained.any(axis=0)
    weights = np.array([samples.get(part.device_id, 1) for part in parts], np.float64)
    bias = bias_of(trained[:, covered], weights / weights.sum()) if covered.any() else 0.0
    layers = len(parts[0].layers)
    figures = [
        ("Devices", f"{len(parts):,}", "in the latest round"),
        (
            "Layers that are trained",
            f"{int(covered.sum())} of {layers}",
            "a layer that no device trains does not change in this round",
        ),
        (
            "Bias of the average",
            f"{bias:.3g}",
            "0 if every device trains every trained layer; the lower, the fairer the average",
        ),
    ]
    if "bias" in reported:
        figures.append(("Bias of the plan, in parameters", f"{reported['bias']:,.4g}", "as the planner weighs it"))
    if "bias_bound" in reported:
        proven = "the planner has proven that no plan has a smaller bias than this"
        figures.append(("Bound", f"{reported['bias_bound']:,.4g}", proven))
    if reported.get("untrained_parameters"):
        untrained = pluralise(round(reported["untrained_parameters"]), "parameter")
        figures.append(("Trained by no device", untrained, "in this round"))
    if "unused_parameters" in reported:
        unused = pluralise(round(reported["unused_parameters"]), "parameter")
        figures.append(("Left over", unused, "that devices could have trained in time"))
    return figures


def _against(
    rows: Sequence[Mapping[str, Any]], name: str, scale: float, short: str, title: str, unit: str
) -> Figure | None:
    """Draw a measured number over a device's tasks, and its prediction."""
    known = [row for row in reversed(rows) if row[name] is not None]
    if not known:
        return None
    predicted = f"predicted_{name}"
    xs = [row["round"] + 1 for row in known]
    traces = [line(xs, [row[name] * scale for row in known], name="measured")]
    ratios = [row[name] / row[predicted] for row in known if row[predicted]]
    summary = f"Over {pluralise(len(known), 'task')}"
    if ratios:
        guessed = [None if row[predicted] is None else row[predicted] * scale for row in known]
        traces.append(line(xs, guessed, name="predicted", place=1))
        summary += f": the median is {quartiles(ratios)[1]:.3g} times what was predicted"
    return Figure(
        name=f"device-{short}",
        title=title,
        summary=f"{summary}.",
        traces=tuple(traces),
        layout=layout(x="round", y=unit, showlegend=True, xaxis={"tickformat": ",d"}),
    )
