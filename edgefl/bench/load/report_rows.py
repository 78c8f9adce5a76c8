"""Rows of a load test's report: updates per second, latencies, memory."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from edgefl.bench.load.device import Figures, Load
from edgefl.bench.timing import Times

__all__ = ["load_notes", "load_rows"]

_MOST_ERRORS = 5


def load_rows(load: Load, rounds: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows; `rounds` are the coordinator's records of when rounds opened and ended."""
    figures = load.figures
    opened = {one["number"]: one["opened_at"] for one in rounds}
    seconds = max(one["done_at"] for one in rounds) - min(opened.values())
    total = sum(figures.accepted.values())
    rows: list[dict[str, Any]] = [
        {"name": "accepted updates a second", "value": total / seconds, "updates": total, "seconds": seconds}
    ]
    if not load.behaviour.wait:  # a long poll takes as long as it may
        rows.append(_times("poll", figures.polls))
    rows.append(_times("from a round's opening to a task", [at - opened[number] for number, at in figures.tasks]))
    rows.append(_times("upload", figures.uploads))
    rows.append({"name": "server's processor time an update", "value": figures.server_seconds / max(1, total)})
    rows.append({"name": "devices' processor time an update", "value": figures.own_seconds / max(1, total)})
    return [*rows, *_memory(figures)]


def _times(name: str, seconds: Sequence[float]) -> dict[str, Any]:
    times = Times(tuple(seconds))
    return {"name": name, "value": statistics.median(seconds), "seconds": times.figures()}


def _memory(figures: Figures) -> list[dict[str, Any]]:
    """Return the server's memory growth in each round: in total, and of the process that grew most."""
    rows = []
    for number, seen in sorted(figures.memory.items()):
        if len(seen) == 2:
            (few, first), (many, last) = sorted(seen.items())
            rows.append(
                {
                    "name": f"server's memory, round {number + 1}",
                    "value": sum(last.values()),
                    "before_bytes": sum(first.values()),
                    "before_updates": few,
                    "updates": many,
                    "grown_most_bytes": max(last[pid] - first.get(pid, 0) for pid in last),
                }
            )
    return rows


def load_notes(figures: Figures) -> list[str]:
    """Return notes on failed requests, or that there were none."""
    if not figures.errors:
        return ["no request failed"]
    said = [f"request failed: {error}" for error in figures.errors[:_MOST_ERRORS]]
    return [f"{len(figures.errors)} requests failed; the figures are not those of a healthy run", *said]
