"""Accuracy, size and cost of every strategy, and the claims of the papers.

    python -m benchmarks.accuracy [--quick | --standard | --full] [--strategies a,b] [--setups a,b] [--seeds 3]
                                  [--resume] [--out runs/accuracy] [--workers 2]

Each run is a whole federation in one process (`edgefl.simulation`): real rules, real onnxruntime, real bodies on the
wire, counted before the packing of agents. Printed and written to the folder:

    table.txt, table.csv     mean and deviation over seeds: accuracy of the global model, at the end and over the last
                             30 % of the rounds, and of devices on samples of their own before and after
                             personalisation, bytes of an update up and down, multiply-adds, trained and kept
                             parameters, milliseconds of a training step
    claims.md                what the papers say, with their figures and ours: held, not held or undecided
    tuning.txt               the rates that each method was tried with, on seeds of their own (--standard)
    tables.md                both as a page, by set-up
    results.json             everything
    curves-*.svg             accuracy by round

A finished run is a file in the folder; with --resume those are not done again.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.accuracy_study.claims import judged
from benchmarks.accuracy_study.data import missing_data
from benchmarks.accuracy_study.entries import Entry, entries_of
from benchmarks.accuracy_study.figures import figures_of
from benchmarks.accuracy_study.ledger import Ledger
from benchmarks.accuracy_study.report import write_report
from benchmarks.accuracy_study.run import Run, run
from benchmarks.accuracy_study.setups import FULL, QUICK, Setup
from benchmarks.accuracy_study.standard import STANDARD
from benchmarks.accuracy_study.tuning import STEPS, TUNING_SEEDS, Choice, Trial, sharing
from edgefl.strategies import STRATEGIES
from edgefl.values.formatting import format_seconds

_WIDTH = 30


def main() -> None:
    """Run, or go on with, the study."""
    args = _arguments()
    study = _study(args)
    setups = [name for name in study if args.setups is None or name in args.setups]
    entries = entries_of(setups, args.strategies)
    if not entries:
        sys.exit("nothing is left to run: the data of these set-ups are missing")
    choices = _tuned(study, entries, args)
    results = _results(_reported(study, choices, args.seeds), args)
    figures = figures_of(results)
    write_report(figures, judged(figures), results, [study[name] for name in setups], choices, args.out)


def _size(args: argparse.Namespace) -> Mapping[str, Setup]:
    """Return the set-ups of the size that was asked for."""
    return FULL if args.full else STANDARD if args.standard else QUICK


def _study(args: argparse.Namespace) -> Mapping[str, Setup]:
    """Return the set-ups that can be run here; data that are missing are named in a line."""
    study = _size(args)
    missing = {setup.data: reason for setup in study.values() if (reason := missing_data(setup)) is not None}
    for reason in missing.values():
        print(f"left out: {reason}", file=sys.stderr)
    return {name: setup for name, setup in study.items() if setup.data not in missing}


def _tuned(study: Mapping[str, Setup], entries: Sequence[Entry], args: argparse.Namespace) -> list[Choice]:
    """Return every entry with its best settings, found on seeds that are not reported."""
    trials = {(entry.setup, entry.label): Trial(study[entry.setup], entry) for entry in entries}
    for _ in range(STEPS):
        wanted = [(trial, option) for trial in trials.values() for option in trial.wanted()]
        asked = [
            (trial.setup, replace(option, fine_tuned=()), seed) for trial, option in wanted for seed in TUNING_SEEDS
        ]
        results = iter(_results(asked, args))
        for trial, option in wanted:
            trial.note(option, [next(results) for _ in TUNING_SEEDS])
    choices = {key: trial.choice() for key, trial in trials.items()}
    return [
        sharing(one.entry, choices[setup, one.entry.like]) if (setup, one.entry.like) in choices else one
        for (setup, _), one in choices.items()
    ]


def _reported(
    study: Mapping[str, Setup], choices: Sequence[Choice], seeds: int | None
) -> list[tuple[Setup, Entry, int]]:
    """Return the runs of all reported seeds: the first seed of everything before the second of anything."""
    asked = [(study[one.entry.setup], one.entry) for one in choices]
    most = max(seeds or setup.seeds for setup, _ in asked)
    return [(*one, seed) for seed in range(most) for one in asked if seed < (seeds or one[0].seeds)]


def _results(asked: Sequence[tuple[Setup, Entry, int]], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the results of runs in their order; with --resume, of those that are not finished yet only."""
    models, ledger = args.out / "models", Ledger(args.out / "runs")
    wanted = [Run(*each, models) for each in asked]
    known = {number: found for number, one in enumerate(wanted) if args.resume and (found := ledger.known(one))}
    left = [number for number in range(len(wanted)) if number not in known]
    if left:
        _prepare({(wanted[number].setup.model, wanted[number].seed) for number in left}, models)
    for number, found in _done(wanted, left, args.workers):
        ledger.keep(wanted[number], found)
        known[number] = found
    return [known[number] for number in range(len(wanted))]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small set-ups, a quarter of an hour (the default)")
    size.add_argument(
        "--standard", action="store_true", help="CIFAR-10 and Fashion-MNIST, every rate tuned: at most two hours"
    )
    size.add_argument("--full", action="store_true", help="the papers' own rounds and devices: days")
    parser.add_argument("--strategies", type=_names, help="only these, by name")
    parser.add_argument(
        "--setups", type=_names, help=f"only these: {', '.join(dict.fromkeys([*QUICK, *STANDARD, *FULL]))}"
    )
    parser.add_argument("--seeds", type=int, help="how many are reported (default: 3, or what the set-up needs)")
    parser.add_argument("--resume", action="store_true", help="do not repeat finished runs")
    parser.add_argument("--out", type=Path, default=Path("runs/accuracy"))
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    _check(parser, args)
    return args


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Refuse names that nothing has, and a study of nothing."""
    study = _size(args)
    for option, there in (("setups", study), ("strategies", STRATEGIES)):
        unknown = [name for name in getattr(args, option) or () if name not in there]
        if unknown:
            parser.error(f"--{option} has no {unknown[0]!r}; there are: {', '.join(there)}")
    if (args.seeds is not None and args.seeds < 1) or not entries_of(args.setups or list(study), args.strategies):
        parser.error("nothing of this is in the study; choose other --setups, --strategies or --seeds")


def _prepare(models: set[tuple[str, int]], folder: Path) -> None:
    """Export models with the initial weights of some seeds. Nothing else here needs torch."""
    from benchmarks.accuracy_study.models import prepare

    for model in sorted({name for name, _ in models}):
        _show(f"exporting {model}")
        prepare(model, sorted(seed for name, seed in models if name == model), folder)


def _done(wanted: Sequence[Run], left: list[int], workers: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield runs as they end, with a bar on a terminal."""
    began = time.monotonic()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # one run a core
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(run, wanted[number]): number for number in left}
        try:
            for count, future in enumerate(as_completed(futures), start=1):
                number = futures[future]
                yield number, future.result()
                remaining = (time.monotonic() - began) / count * (len(left) - count)
                bar = "#" * round(_WIDTH * count / len(left))
                words = f"{format_seconds(round(remaining))} left, {_named(wanted[number])}"
                _show(f"[{bar:.<{_WIDTH}}] {count} of {len(left)} runs, {words}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    _show("")


def _named(one: Run) -> str:
    return f"{one.setup.name} {one.entry.label}, seed {one.seed}"


def _show(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text[:118]:<118}", end="" if text else "\r", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
