"""Measurements of engine processes: time, memory, energy and, if requested, accuracy.

The order matters. Memory is read after the warm-up, so that the thread that samples it on some systems is gone before
the first measured turn; energy is measured after the turns, since it needs dozens of runs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgefl.bench.engine_processes import EngineProcess, energy_per_run, run_interleaved, started_processes
from edgefl.bench.timing import CLEAR, Times, ratio_of
from edgefl.errors import EdgeFLError

__all__ = ["BASELINE", "EngineMeasurement", "MeasuringTime", "measure_processes", "noise_notes", "source_notes"]

BASELINE = "baseline"
"""Verdict for the ratio of a measurement to itself."""


@dataclass(frozen=True, slots=True)
class MeasuringTime:
    """How long to measure."""

    turns: int
    warm_up: int = 3
    threads: int = 1
    energy_seconds: float = 0.5
    """Length of each energy measurement; 0 skips energy."""

    def __post_init__(self) -> None:
        for name, least in (("turns", 2), ("warm_up", 1), ("threads", 1), ("energy_seconds", 0)):
            if getattr(self, name) < least:
                word = name.replace("_", "-")
                raise EdgeFLError(f"--{word} is {getattr(self, name):g}", fix=f"Give at least {least}.")

    def setting(self) -> dict[str, Any]:
        """Return the fields for a report."""
        return {"turns": self.turns, "warm_up": self.warm_up, "threads": self.threads}


@dataclass(frozen=True, slots=True, eq=False)
class EngineMeasurement:
    """The measurement of one engine process."""

    times: Times
    facts: Mapping[str, Any]
    memory: Mapping[str, Any]
    energy: Mapping[str, Any] | None = None
    accuracy: Mapping[str, Any] | None = None

    def figures(self) -> dict[str, Any]:
        """Return the fields for a report."""
        return {
            "runs_on": self.facts.get("engine"),
            "load_seconds": self.facts["load_seconds"],
            "seconds": self.times.figures(),
            "memory": dict(self.memory),
            "energy": None if self.energy is None else dict(self.energy),
            "accuracy": None if self.accuracy is None else dict(self.accuracy),
        }

    def ratio_to(self, other: "EngineMeasurement", against: str, *, inverse: bool = False) -> dict[str, Any]:
        """Return the ratio of its time to another's, or the inverse, which is a speed-up."""
        over, under = (other, self) if inverse else (self, other)
        figures = ratio_of(over.times, under.times).figures(against)
        return figures | ({"verdict": BASELINE} if other is self else {})


def measure_processes(
    commands: Mapping[str, Sequence[str]],
    pace: MeasuringTime,
    *,
    samples: Path | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> tuple[dict[str, EngineMeasurement], dict[str, str]]:
    """Run these commands in turns. Return the measurements, and the reasons of those that could not start."""
    progress("starting")
    with started_processes(commands) as field:
        processes = field.processes
        progress("warming up")
        run_interleaved(processes, 0, pace.warm_up)
        memory = {name: process.ask("memory") for name, process in processes.items()}
        progress(f"measuring, {pace.turns} turns")
        times = run_interleaved(processes, pace.turns, 0)
        progress("energy")
        joules = energy_per_run(processes, pace.energy_seconds) if pace.energy_seconds else {}
        progress("answers")
        answers = {} if samples is None else {name: _evaluated(process, samples) for name, process in processes.items()}
        found = {
            name: EngineMeasurement(
                times[name], processes[name].facts, memory[name], joules.get(name), answers.get(name)
            )
            for name in processes
        }
    return found, dict(field.missing)


def _evaluated(process: EngineProcess, samples: Path) -> dict[str, Any]:
    return process.ask("evaluate", file=str(samples))


def source_notes(found: Mapping[str, EngineMeasurement]) -> list[str]:
    """Return the sources of memory and energy, with provenance and scope."""
    notes = []
    for what, values in (
        ("memory", [one.memory for one in found.values()]),
        ("energy", [one.energy for one in found.values() if one.energy is not None]),
    ):
        labels = dict.fromkeys(f"{one['provenance']} ({one['source']}, scope {one['scope']})" for one in values)
        notes += [f"{what}: {label}" for label in labels]
    return notes


def noise_notes(rows: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    """Return a warning for every ratio that should not be quoted."""
    return [
        f"{row['name']}: {row[key]['ratio']:.2f}x is {row[key]['verdict']}"
        f" (half of the turns lie between {row[key]['low']:.2f} and {row[key]['high']:.2f})"
        for row in rows
        if row.get(key) is not None and row[key]["verdict"] not in (CLEAR, BASELINE)
    ]
