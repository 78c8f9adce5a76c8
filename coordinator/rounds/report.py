"""The report of a round: a few numbers that are stored with it, shown to operators and plotted."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from coordinator.storage.records import Task, TaskCounts
from edgefl.charts.curves import quartiles
from edgefl.federation.evaluation import Score
from edgefl.strategies.sample_counts import MOST_TIMES_MEDIAN, sample_cap

__all__ = ["read_report", "round_report"]

_NOBODY: Mapping[str, str] = {}
_MOST_LEFT_OUT = 20
"""Devices whose reasons are in a report."""


def round_report(
    tasks: Sequence[Task],
    ended: TaskCounts,
    score: Score | None,
    *,
    combine_seconds: float,
    personal: bool = False,
    failure: str | None = None,
    left_out: Mapping[str, str] = _NOBODY,
) -> dict[str, Any]:
    """Return the report of a round in which the updates of these tasks count; `failure` is why there is no score.

    `personal` is the round after the last one, which produces no model. `left_out` is why devices got no task, or why
    their updates did not count. All numbers are finite, whatever devices claim, and in means no device counts for more
    samples than in an average of updates.
    """
    # Plain JSON: these results were checked when they arrived, and a round may have a thousand of them.
    results = [json.loads(task.result) for task in tasks if task.result is not None]
    telemetry = [result["telemetry"] for result in results]
    samples = sum(result["samples"] for result in results)
    most = sample_cap([result["samples"] for result in results], MOST_TIMES_MEDIAN)
    weights = {id(result): min(result["samples"], most) for result in results}
    evaluated = [result for result in results if result["accuracy"] is not None]
    before = [(result["metrics"]["accuracy_before"], weights[id(result)]) for result in evaluated if _tuned(result)]
    joules = [one["energy"]["joules"] for one in telemetry if one["energy"] is not None]
    report: dict[str, Any] = {
        "updates": len(tasks),
        "refused": ended.refused,
        "expired": ended.expired,
        "samples": samples,
        "loss": _mean([(result["loss"], weights[id(result)]) for result in results]),
        "device_accuracy": _mean([(result["accuracy"], weights[id(result)]) for result in evaluated]),
        "slowest_seconds": max((one["latency"]["round_seconds"] for one in telemetry), default=None),
        "largest_peak_bytes": max((one["memory"]["peak_bytes"] for one in telemetry), default=None),
        "joules": _finite(sum(joules)) if joules else None,
        "down_bytes": sum(one["transfer"]["down_bytes"] for one in telemetry),
        "up_bytes": sum(one["transfer"]["up_bytes"] for one in telemetry),
        "energy_known": sorted({one["energy"]["provenance"] for one in telemetry if one["energy"] is not None}),
        "accuracy_quartiles": _quartiles([result["accuracy"] for result in evaluated]),
        "loss_quartiles": _quartiles([result["loss"] for result in results if result["steps"]]),
        "seconds_quartiles": _quartiles([one["latency"]["round_seconds"] for one in telemetry]),
        "stale_updates": sum(task.counted_in != task.round for task in tasks),
        "combine_seconds": combine_seconds,
    }
    if left_out:
        report["left_out"] = dict(list(left_out.items())[:_MOST_LEFT_OUT])
        report["left_out_count"] = len(left_out)
    if personal:
        report["personal"] = True
    if before:
        report["device_accuracy_before"] = _mean(before)
    if score is not None:
        loss = score.loss if math.isfinite(score.loss) else None  # a model that diverged has none
        report |= {"accuracy": score.accuracy, "test_loss": loss, "test_samples": score.samples}
        report["judged_fraction"] = score.judged_fraction
    if failure is not None:
        report["evaluation_error"] = failure
    return report


def read_report(text: str | None) -> dict[str, Any] | None:
    """Return a stored report. NaN and infinity, which older versions stored, become None."""
    if text is None:
        return None
    report: dict[str, Any] = json.loads(text, parse_constant=lambda _: None)
    return report


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _quartiles(values: Sequence[float]) -> list[float] | None:
    finite = [value for value in values if math.isfinite(value)]
    found = list(quartiles(finite)) if finite else []
    return found if found and all(map(math.isfinite, found)) else None


def _tuned(result: dict[str, Any]) -> bool:
    return bool(0 <= result["metrics"].get("accuracy_before", -1) <= 1)


def _mean(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the mean weighted by samples; None without values, and if it is not finite."""
    total = sum(weight for _, weight in pairs)
    mean = sum(value * weight for value, weight in pairs) / total if total else math.nan
    return _finite(mean)
