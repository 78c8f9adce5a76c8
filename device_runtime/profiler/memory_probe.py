"""Measures the peak memory of training one case in a process that does nothing else.

`device_runtime.profiler.memory` writes a folder and starts a process that calls `main` with it; the answer is a line of
JSON on standard output. Where no process can be started, it calls `peak_of` itself.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from device_runtime.engines import Engine, ThreadSettings, open_engine
from device_runtime.profiler.cases import Case, CaseProgram, Sample, Trial, load_step
from device_runtime.telemetry import MemoryWatch
from edgefl.masks import Mask
from edgefl.model_graph import ModelGraph
from edgefl.values import Memory, Program, dumps, loads, to_json

__all__ = ["main", "peak_of", "read_case", "write_case"]

_STEPS = 3
"""The second step takes the most: the engine plans its memory in the first."""

_GRAPH, _PROGRAM, _JOB = "model_graph.json", "program", "job.json"


def peak_of(case: Case, engine: Engine) -> Memory:
    """Load and train the case, and return the peak memory of this process."""
    watch = MemoryWatch()
    try:
        trial = Trial(case, load_step(engine, case))
        trial.run(_STEPS)
    finally:
        memory = watch.stop()
    return memory


def write_case(folder: Path, case: Case, engine: str | None, threads: ThreadSettings) -> None:
    """Write a case to a folder for another process."""
    (folder / _GRAPH).write_text(dumps(case.mask.graph))
    (folder / _PROGRAM).write_bytes(case.program.data)
    job = {
        "model": case.program.model,
        "sample": asdict(case.program.sample),
        "trained": sorted(case.mask.trained),
        "widths": dict(case.mask.widths),
        "batch": case.batch,
        "engine": engine,
        "threads": asdict(threads),
        "described": None if case.program.program is None else dumps(case.program.program),
    }
    (folder / _JOB).write_text(json.dumps(job))


def read_case(folder: Path) -> tuple[Case, Engine]:
    """Read a case, and open its engine."""
    job = json.loads((folder / _JOB).read_text())
    graph = loads(ModelGraph, (folder / _GRAPH).read_bytes())
    sample = Sample(**job["sample"] | {"shape": tuple(job["sample"]["shape"])})
    kept = {group: range(width) for group, width in job["widths"].items()}
    mask = Mask.of(graph, trained=job["trained"], kept=kept)
    described = None if job["described"] is None else loads(Program, job["described"])
    program = CaseProgram(job["model"], (folder / _PROGRAM).read_bytes(), sample, described)
    return Case(program, mask, job["batch"]), open_engine(job["engine"], ThreadSettings(**job["threads"]))


def main() -> None:
    """Measure the case in the folder that the command line names."""
    case, engine = read_case(Path(sys.argv[1]))
    sys.stdout.write(json.dumps(to_json(peak_of(case, engine))) + "\n")
