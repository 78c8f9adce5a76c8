"""Unequal devices: every method at the same simulated time, under the same exact head.

    python -m benchmarks.equal_cost [--scenarios a,b] [--methods a,b] [--seeds 3] [--rounds 60] [--resume]
                                    [--out runs/equal-cost] [--workers 2]

Each run is a federation of ten devices that ends when the scenario's simulated time is spent: as much as `--rounds`
rounds take in which the fastest device trains the whole model. The rate of every method is tuned in every scenario on a
seed that is not reported. Printed, and written to the folder as `tables.md`: accuracy of the global model, seconds,
joules, megabytes a device, and multiply-adds of a prediction as a multiple of the whole model's. `results.json` has the
curves too. A finished run is a file; with --resume those are not done again.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.accuracy_study.ledger import Ledger
from benchmarks.equal_cost_study.methods import METHODS, RATES, Method
from benchmarks.equal_cost_study.run import Run, run
from benchmarks.equal_cost_study.scenarios import SCENARIOS, Scenario
from edgefl.artifacts.artifact_store import write_atomically
from edgefl.values.formatting import format_seconds

_TUNING_SEED = 100
_WIDTH = 30


def main() -> None:
    """Tune, run, and print the tables."""
    args = _arguments()
    scenarios = [replace(SCENARIOS[name], rounds=args.rounds) for name in args.scenarios]
    methods = [METHODS[name] for name in args.methods]
    tried = [(scenario, replace(one, rate=rate)) for scenario in scenarios for one in methods for rate in RATES]
    found = _results([(*each, _TUNING_SEED) for each in tried], args)
    best: dict[tuple[str, str], tuple[float, Method]] = {}
    for (scenario, method), result in zip(tried, found, strict=True):
        key, accuracy = (scenario.name, method.label), result.get("accuracy") or 0.0
        if key not in best or accuracy > best[key][0]:
            best[key] = accuracy, method
    asked = [
        (one, best[one.name, method.label][1], seed)
        for seed in range(args.seeds)
        for one in scenarios
        for method in methods
    ]
    results = _results(asked, args)
    tables = [scenario_of(one, results) for one in scenarios]
    print("\n".join(tables))
    write_atomically(args.out / "tables.md", "\n".join(tables).encode())
    everything = {"tuning": found, "runs": results}
    write_atomically(args.out / "results.json", json.dumps(everything, indent=1).encode())


def scenario_of(scenario: Scenario, results: Sequence[dict[str, Any]]) -> str:
    """Return the table of a scenario."""
    from benchmarks.equal_cost_study.table import scenario_table

    return scenario_table(scenario, [one for one in results if one["setup"] == scenario.name])


def _results(asked: Sequence[tuple[Scenario, Method, int]], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the results of runs in their order; with --resume, of those that are not finished yet only."""
    models, ledger = args.out / "models", Ledger(args.out / "runs")
    wanted = [Run(*each, models) for each in asked]
    known = {place: found for place, one in enumerate(wanted) if args.resume and (found := ledger.known(one))}
    left = [place for place in range(len(wanted)) if place not in known]
    _prepare({(wanted[place].setup.model, wanted[place].seed) for place in left}, models)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # one run a core
    began = time.monotonic()
    with ProcessPoolExecutor(args.workers, multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(run, wanted[place]): place for place in left}
        for count, future in enumerate(as_completed(futures), start=1):
            place = futures[future]
            known[place] = future.result()
            ledger.keep(wanted[place], known[place])
            remaining = (time.monotonic() - began) / count * (len(left) - count)
            bar = "#" * round(_WIDTH * count / len(left))
            _show(f"[{bar:.<{_WIDTH}}] {count} of {len(left)} runs, {format_seconds(round(remaining))} left")
    _show("")
    return [known[place] for place in range(len(wanted))]


def _prepare(models: set[tuple[str, int]], folder: Path) -> None:
    from benchmarks.accuracy_study.models import prepare

    for model in sorted({name for name, _ in models}):
        prepare(model, sorted(seed for name, seed in models if name == model), folder)


def _show(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text[:118]:<118}", end="" if text else "\r", file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", type=_names, default=list(SCENARIOS), help=", ".join(SCENARIOS))
    parser.add_argument("--methods", type=_names, default=list(METHODS), help=", ".join(METHODS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--resume", action="store_true", help="do not repeat finished runs")
    parser.add_argument("--out", type=Path, default=Path("runs/equal-cost"))
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    for option, there in (("scenarios", SCENARIOS), ("methods", METHODS)):
        unknown = [name for name in getattr(args, option) if name not in there]
        if unknown:
            parser.error(f"--{option} has no {unknown[0]!r}; there are: {', '.join(there)}")
    return args


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


if __name__ == "__main__":
    main()
