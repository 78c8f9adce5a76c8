"""What a round gave, in a few numbers: kept with the round, shown to operators, drawn in plots."""

from collections.abc import Sequence
from typing import Any

from coordinator.evaluation import Score
from coordinator.storage.records import Task
from coordinator.storage.store import Ended
from edgefl.values import LocalResult, loads

__all__ = ["round_report"]


def round_report(
    tasks: Sequence[Task], ended: Ended, score: Score | None, *, combine_seconds: float, failure: str | None = None
) -> dict[str, Any]:
    """Return the report of a round whose updates these tasks are; `failure` is why there is no score."""
    results = [loads(LocalResult, task.result) for task in tasks if task.result is not None]
    samples = sum(result.samples for result in results)
    judged = [result for result in results if result.accuracy is not None]
    joules = [result.telemetry.energy.joules for result in results if result.telemetry.energy is not None]
    report: dict[str, Any] = {
        "updates": len(tasks),
        "refused": ended.refused,
        "expired": ended.expired,
        "samples": samples,
        "loss": _mean([(result.loss, result.samples) for result in results]),
        "device_accuracy": _mean([(result.accuracy or 0.0, result.samples) for result in judged]),
        "slowest_seconds": max((result.telemetry.latency.round_seconds for result in results), default=None),
        "largest_peak_bytes": max((result.telemetry.memory.peak_bytes for result in results), default=None),
        "joules": sum(joules) if joules else None,
        "down_bytes": sum(result.telemetry.transfer.down_bytes for result in results),
        "up_bytes": sum(result.telemetry.transfer.up_bytes for result in results),
        "stale_updates": sum(task.counted_in != task.round for task in tasks),
        "combine_seconds": combine_seconds,
    }
    if score is not None:
        report |= {"accuracy": score.accuracy, "test_loss": score.loss, "test_samples": score.samples}
    if failure is not None:
        report["evaluation_error"] = failure
    return report


def _mean(pairs: Sequence[tuple[float, int]]) -> float | None:
    """Return the mean weighted by samples; None of nothing."""
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / total if total else None
