"""Comparison of runs: their figures, the differences from the first run, and the settings that differ."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgefl.report.equal_cost import EqualCost, equal_cost_of
from edgefl.report.headlines import name_of, so_far
from edgefl.simulation.request import SimulationRequest
from edgefl.simulation.run_folder import Run
from edgefl.simulation.summary import Summary
from edgefl.values import to_json
from edgefl.values.formatting import (
    format_bytes,
    format_count,
    format_joules,
    format_percent,
    format_seconds,
    pluralise,
)

__all__ = ["FIGURES", "SHARES", "Comparison", "RunRow", "comparison_of"]

SHARES = ("accuracy", "judged_fraction", "personal_before", "personal_after", "kept_fraction")
"""Figures compared in percentage points; all others are compared as a ratio minus one."""
_AMOUNTS = ("simulated_seconds", "joules", "up_bytes", "down_bytes", "updates")
_TEST_DATA = ("data", "folder", "test_samples")
_NOT_SET = "not set"
_SAID_ELSEWHERE = re.compile(r"classes\..*\.(name|share|source)|federation\.(name|evaluation\.(data|folder))")
FIGURES: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("accuracy", "Accuracy", format_percent),
    ("judged_fraction", "Judged", format_percent),
    ("personal_before", "Before", format_percent),
    ("personal_after", "Personal", format_percent),
    ("kept_fraction", "Kept", format_percent),
    ("simulated_seconds", "Time", format_seconds),
    ("joules", "Energy", format_joules),
    ("up_bytes", "Up", format_bytes),
    ("down_bytes", "Down", format_bytes),
    ("updates", "Updates", format_count),
)
"""The compared fields of a run's summary: field, heading, and how its value is formatted."""
_SHORT_NAMES = {
    "federation.rounds.count": "federation.rounds",
    "federation.rounds.deadline": "federation.deadline",
    "federation.selection.devices": "federation.per_round",
    "federation.round_share": "federation.deadline_share",
    "federation.evaluation.every": "federation.evaluate_every",
}
"""The names of a federation's settings in comparisons, which programs read."""
_Fleet = Mapping[str, Mapping[str, Any]]
"""Fields of device classes, by class name."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of a comparison."""

    name: str
    path: str
    strategy: str
    finished: bool
    figures: Summary
    asked: Mapping[str, Any]
    """This run's values of the settings that differ between runs."""
    differences: Mapping[str, float | None]
    """Differences from the first run: fractions as a difference, amounts relative to the first run."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Runs compared with the first of them."""

    rows: tuple[RunRow, ...]
    equal_cost: EqualCost
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "runs": [
                {
                    "name": row.name,
                    "path": row.path,
                    "strategy": row.strategy,
                    "finished": row.finished,
                    "asked_differently": dict(row.asked),
                    "figures": to_json(row.figures),
                    "differences": dict(row.differences),
                }
                for row in self.rows
            ],
            "equal_cost": self.equal_cost.as_json([row.name for row in self.rows]),
            "warnings": list(self.warnings),
        }


def comparison_of(runs: Sequence[Run]) -> Comparison:
    """Compare runs with the first of them."""
    figures = [so_far(run) for run in runs]
    rows = zip(runs, _names(runs), figures, _asked_differently([run.request for run in runs]), strict=True)
    return Comparison(
        tuple(
            RunRow(
                name,
                str(run.path),
                run.request.federation.strategy.name,
                run.summary is not None,
                total,
                asked,
                _differences(figures[0], total),
            )
            for run, name, total, asked in rows
        ),
        equal_cost_of(runs),
        tuple(_warnings(runs)),
    )


def _names(runs: Sequence[Run]) -> list[str]:
    """Return a unique name for each run."""
    names = [name_of(run) for run in runs]
    names = [str(run.path) if names.count(name) > 1 else name for run, name in zip(runs, names, strict=True)]
    return [name if name not in names[:place] else f"{name} ({place + 1})" for place, name in enumerate(names)]


def _differences(first: Summary, other: Summary) -> dict[str, float | None]:
    made: dict[str, float | None] = {}
    for name in SHARES:
        before, after = getattr(first, name), getattr(other, name)
        made[name] = None if before is None or after is None else after - before
    for name in _AMOUNTS:
        before, after = getattr(first, name), getattr(other, name)
        made[name] = after / before - 1 if before and after is not None else None
    return made


def _asked_differently(requests: Sequence[SimulationRequest]) -> list[dict[str, Any]]:
    """Return, for each request, its values of the settings that differ between requests."""
    fleets = [{kind.name: dict(_leaves(to_json(kind), "")) for kind in request.classes} for request in requests]
    flat = [_flat(request, fleet, _said_by_all(fleets)) for request, fleet in zip(requests, fleets, strict=True)]
    keys = dict.fromkeys(key for one in flat for key in one)
    # A class that only some fleets have already shows up in the fleet's composition.
    keys = {key: None for key in keys if not key.startswith("classes.") or all(key in one for one in flat)}
    differing = [key for key in keys if any(one.get(key, _NOT_SET) != flat[0].get(key, _NOT_SET) for one in flat)]
    return [{key: one.get(key, _NOT_SET) for key in differing} for one in flat]


def _said_by_all(fleets: Sequence[_Fleet]) -> list[str]:
    """Return the fields that have one value for all classes of each fleet, though fleets may differ."""
    names = next(iter(fleets[0].values()))
    return [name for name in names if all(len({repr(kind[name]) for kind in fleet.values()}) == 1 for fleet in fleets)]


def _flat(request: SimulationRequest, fleet: _Fleet, alike: Collection[str]) -> dict[str, Any]:
    """Return a request as dotted names and values; fields that all classes share appear once."""
    first = next(iter(fleet.values()))
    told = {kind: {name: value for name, value in one.items() if name not in alike} for kind, one in fleet.items()}
    data = to_json(request)
    federation = data.pop("federation")
    strategy = federation.pop("strategy")
    data |= {"strategy": strategy["name"], "settings": strategy["settings"], "federation": federation}
    data["classes"] = {"every": {name: first[name] for name in alike}} | told
    data["fleet"] = ",".join(f"{kind.name}:{kind.share:g}" for kind in request.classes)
    found = {_SHORT_NAMES.get(key, key): value for key, value in _leaves(data, "")}
    if found.get("federation.evaluate_every", 0) == request.federation.rounds.count:
        found["federation.evaluate_every"] = 0  # as `edgefl simulate` calls it: the last round only
    return {key: value for key, value in found.items() if not _SAID_ELSEWHERE.fullmatch(key)}


def _leaves(data: Mapping[str, Any], path: str) -> Iterable[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _warnings(runs: Sequence[Run]) -> Iterable[str]:
    tested = [tuple(getattr(run.request, name) for name in _TEST_DATA) for run in runs]
    if len(set(tested)) > 1:
        sets = ", ".join(dict.fromkeys(run.request.data for run in runs))
        yield f"These runs are evaluated on different test samples ({sets}): their accuracies are not comparable."
    for run, name in zip(runs, _names(runs), strict=True):
        if run.summary is None:
            asked = pluralise(run.request.federation.rounds.count, "round")
            yield f"{name} is not finished: its figures cover {len(run.rounds)} of {asked}."
