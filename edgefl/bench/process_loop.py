"""The request loop inside an engine process: it loads one workload, then runs or measures it on request.

`edgefl.bench.engine_processes` starts these processes. Both sides exchange one JSON object per line: requests on
standard input, replies on the original standard output. Anything that libraries print goes to standard error. Other
benchmarks import this file into their own environments, so it imports only the standard library and the telemetry,
which needs nothing else.

    {"do": "run"}                      -> {"seconds": ...}
    {"do": "memory"}                   -> the memory growth since before loading; allowed once
    {"do": "energy", "seconds": 0.5}   -> the energy per run, over this many seconds of runs
    {"do": "evaluate", "file": ...}    -> the accuracy on the samples in a file
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import IO, Any

from device_runtime.telemetry import MemoryWatch, choose_energy_source
from device_runtime.telemetry.energy import EnergyMeter
from edgefl.errors import EdgeFLError

__all__ = ["Workload", "serve_requests"]


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A loaded model or step, ready to run."""

    run: Callable[[], object]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts known after loading."""
    evaluate: Callable[[str], Mapping[str, Any]] | None = None
    """Returns the accuracy on a file of samples."""


def serve_requests(
    load: Callable[[], Workload | Callable[[], object]], prepare: Callable[[], object] = lambda: None
) -> None:
    """Serve requests until standard input ends. Memory taken by `prepare`, such as imports, is not counted."""
    answers = _own_output()
    try:
        prepare()
        watch = MemoryWatch()
        began = time.perf_counter()
        loaded = load()
        workload = loaded if isinstance(loaded, Workload) else Workload(loaded)
        ready = {"load_seconds": time.perf_counter() - began, **workload.facts}
    except EdgeFLError as error:
        _say(answers, {"failed": error.problem, "fix": error.fix})
        return
    except ImportError as error:
        _say(answers, {"failed": f"the package {error.name!r} cannot be imported ({error})", "fix": "Install it."})
        return
    _say(answers, {"ready": ready})
    for line in sys.stdin:
        try:
            _say(answers, _answer(json.loads(line), workload, watch))
        except EdgeFLError as error:
            _say(answers, {"failed": error.problem, "fix": error.fix})


def _own_output() -> IO[str]:
    """Return the original standard output, and redirect everything else written there to standard error."""
    sys.stdout.flush()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _say(answers: IO[str], message: Mapping[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()


def _answer(request: Mapping[str, Any], workload: Workload, watch: MemoryWatch) -> Mapping[str, Any]:
    match request["do"]:
        case "run":
            start = time.perf_counter()
            workload.run()
            return {"seconds": time.perf_counter() - start}
        case "memory":
            memory = watch.stop()
            return asdict(memory) | {"beyond_bytes": memory.peak_bytes - memory.baseline_bytes}
        case "energy":
            return _energy(workload.run, float(request["seconds"]))
        case "evaluate" if workload.evaluate is not None:
            return workload.evaluate(request["file"])
    raise EdgeFLError(f"an engine process cannot do {request['do']!r}", fix="Request a run.")


def _energy(run: Callable[[], object], seconds: float) -> dict[str, Any]:
    """Run for this long, at least twice, and divide the energy by the runs: no instrument resolves milliseconds."""
    meter, runs, end = EnergyMeter(choose_energy_source()), 0, time.perf_counter() + seconds
    while runs < 2 or time.perf_counter() < end:
        run()
        runs += 1
    energy = asdict(meter.stop())
    return energy | {"runs": runs, "joules_each": energy["joules"] / runs}
