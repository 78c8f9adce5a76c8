"""The facts of a task: what it was and cost, as a few plain values for tables and charts.

Plans and results are read as plain JSON: they were checked when they were created or received, and there are thousands.
"""

import json
import math
from typing import Any

from coordinator.storage.records import Task

__all__ = ["MEASURED", "PLANNED", "facts_of", "refusal_of"]

PLANNED = ("kept", "trained", "rung")
"""What a task is."""
MEASURED = (
    "step_seconds",
    "predicted_step_seconds",
    "round_seconds",
    "peak_bytes",
    "predicted_peak_bytes",
    "joules",
    "predicted_joules",
    "energy_label",
    "down_bytes",
    "up_bytes",
    "heat",
    "accuracy",
    "loss",
)
"""What it cost, and what was predicted. Each may be None."""

_DIGITS = 6


def facts_of(task: Task) -> dict[str, Any]:
    """Return what a task was and, if it was done, what it cost and on how many samples."""
    facts: dict[str, Any] = dict.fromkeys((*PLANNED, *MEASURED, "samples"))
    predicted = json.loads(task.plan)["predicted"] or {}
    facts |= {
        "kept": task.kept_fraction,
        "trained": task.trained_fraction,
        "rung": task.rung,
        "predicted_peak_bytes": predicted.get("peak_bytes"),
        "predicted_joules": predicted.get("joules"),
    }
    if task.result is not None:
        facts |= _result(json.loads(task.result), predicted.get("seconds"))
    return {name: _short(value) for name, value in facts.items()}


def refusal_of(task: Task) -> dict[str, str] | None:
    """Return the reason and the message of a refusal; None if the device did not refuse."""
    if task.refusal is None:
        return None
    refusal = json.loads(task.refusal)
    return {"reason": refusal["reason"], "message": refusal["message"]}


def _result(result: dict[str, Any], predicted_seconds: float | None) -> dict[str, Any]:
    telemetry = result["telemetry"]
    latency, energy = telemetry["latency"], telemetry["energy"] or {}
    steps = result["steps"]
    return {
        "step_seconds": latency["p50_step_seconds"],
        # The prediction covers the steps of a round together, and nothing else of the round.
        "predicted_step_seconds": predicted_seconds / steps if predicted_seconds and steps else None,
        "round_seconds": latency["round_seconds"],
        "peak_bytes": telemetry["memory"]["peak_bytes"],
        "joules": energy.get("joules"),
        "energy_label": f"{energy['provenance']}, {energy['source']}, {energy['scope']}" if energy else None,
        "down_bytes": telemetry["transfer"]["down_bytes"],
        "up_bytes": telemetry["transfer"]["up_bytes"],
        "heat": _heat(telemetry["thermal"]),
        "accuracy": result["accuracy"],
        "loss": result["loss"],
        "samples": result["samples"],
    }


def _heat(thermal: dict[str, Any] | None) -> str | None:
    """Return how warm a task made its device: '45 to 71 °C, light to severe, throttled'."""
    if thermal is None:
        return None
    parts = [
        _change([f"{value:.0f}" for value in _known(thermal, "start_celsius", "end_celsius")], " °C"),
        _change([str(value) for value in _known(thermal, "start_status", "end_status")]),
        "throttled" if thermal["throttled"] else "",
    ]
    return ", ".join(part for part in parts if part) or None


def _known(thermal: dict[str, Any], *names: str) -> list[Any]:
    return [thermal[name] for name in names if thermal.get(name) is not None]


def _change(values: list[str], unit: str = "") -> str:
    return " to ".join(dict.fromkeys(values)) + unit if values else ""


def _short(value: Any) -> Any:
    """Round a number to the digits that people read, as tables are sent often. NaN and infinity become None."""
    if not isinstance(value, float):
        return value
    return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
