"""A hundred simulated clients: EdgeFL, Flower's simulation, and a bare PyTorch loop over the same work.

    python -m benchmarks.peers.flower_simulation [--model mlp] [--rounds 10] [--turns 3]

Ten of 100 clients a round, 600 images each, one epoch in batches of 64, plain descent, two workers with one thread
each. `mlp` is a perceptron 64-32-10 on Fashion-MNIST pooled to 8x8, `cnn4` is FedMRN's network on the images as they
are; every contender reads the same arrays and starts from the same weights. Flower and the loop run in `.venv-flower`,
which is made when it is missing. Each contender first runs once to be watched and to warm the file cache, then the
timed runs follow in turns. Printed are medians:

    updates a second   client updates from the end of the first round to the end of the last
    whole run          seconds from the start of the process to its end, start-up and all rounds
    first round after  seconds from the start of the process to the end of the first round
    peak MB            all processes together, pages that they share counted once (PSS, looked at ten times a second)
    accuracy           of the last model on 2,000 test images: whether the contenders did the same work

EdgeFL's model was exported before, as for every use of it; what that took is printed.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.peers.case import Case, read_left
from benchmarks.peers.environment import CHECKOUT, VERSION, flower_environment, python_with_flower
from benchmarks.peers.preparing import Images, prepare
from benchmarks.peers.processes import Finished, run
from benchmarks.peers.table import Target, judged, load_average, table
from benchmarks.peers.torch_client import share_right

__all__ = ["main", "parser", "targets_of"]

_MODULES = {"bare": "bare_loop", "flower": "flower_rounds", "edgefl": "edgefl_rounds"}
_TITLES = {"bare": "bare PyTorch loop", "flower": f"Flower {VERSION}", "edgefl": "EdgeFL"}
_UPDATES, _WHOLE, _FIRST, _PEAK, _RIGHT = "updates a second", "whole run", "first round after", "peak MB", "accuracy"
_DIGITS = {_UPDATES: 1, _WHOLE: 2, _FIRST: 2, _PEAK: 0, _RIGHT: 3}

Figures = dict[str, float]


def main() -> None:
    """Run the contenders, and compare."""
    args = parser().parse_args()
    python = python_with_flower()
    with tempfile.TemporaryDirectory(prefix="peers-") as name:
        folder, began = Path(name), time.perf_counter()
        case, test, images = prepare(folder, Case(model=args.model, rounds=args.rounds))
        print(f"{args.model}, {images}, {args.rounds} rounds, {args.turns} turns, {load_average()}")
        print(f"prepared in {time.perf_counter() - began:.1f} s, the export of EdgeFL's model among it", flush=True)
        figures = compare(folder, case, test, {"bare": python, "flower": python, "edgefl": Path(sys.executable)}, args)
    print(table({_TITLES[name]: row for name, row in figures.items()}, _DIGITS))
    print(judged(targets_of(args.model, figures)))
    print(load_average())


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--model", choices=["mlp", "cnn4"], default="mlp")
    reader.add_argument("--rounds", type=int, default=10)
    reader.add_argument("--turns", type=int, default=3, help="timed runs of each contender")
    return reader


def compare(
    folder: Path, case: Case, test: Images, pythons: Mapping[str, Path], args: argparse.Namespace
) -> dict[str, Figures]:
    """Return the medians of every contender, of runs in turns."""
    seen: dict[str, list[Figures]] = {name: [] for name in pythons}
    peaks: dict[str, float] = {}
    for turn in range(1 + args.turns):
        for name, python in pythons.items():
            finished = _run(name, python, folder, watched=turn == 0)
            if finished.peak_bytes is not None:
                peaks[name] = finished.peak_bytes / 1e6
                continue
            seen[name].append(_figures(folder, name, case, finished, test))
    return {name: _medians(rows) | {_PEAK: peaks[name]} for name, rows in seen.items()}


def targets_of(model: str, figures: Mapping[str, Figures]) -> list[Target]:
    """Return what EdgeFL is to reach beside the others."""
    bare, flower, ours = (figures[name] for name in ("bare", "flower", "edgefl"))
    memory = Target("peak memory, of Flower's", ours[_PEAK] / flower[_PEAK], 0.6)
    against_bare = ours[_UPDATES] / bare[_UPDATES]
    if model == "cnn4":
        return [Target("updates a second, of the bare loop's", against_bare, 1.0, least=True), memory]
    return [
        Target("updates a second, of Flower's", ours[_UPDATES] / flower[_UPDATES], 5.0, least=True),
        Target("whole run, of Flower's", ours[_WHOLE] / flower[_WHOLE], 1 / 3),
        memory,
    ]


def _run(name: str, python: Path, folder: Path, *, watched: bool) -> Finished:
    own = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    environment = own if name == "edgefl" else flower_environment(folder / "flwr")
    command = [str(python), "-W", "ignore", "-m", f"benchmarks.peers.{_MODULES[name]}", str(folder)]
    return run(command, environment, folder / f"{name}.log", watched=watched)


def _figures(folder: Path, name: str, case: Case, finished: Finished, test: Images) -> Figures:
    left = read_left(folder, name)
    later = case.per_round * (len(left.ends) - 1)
    return {
        _UPDATES: later / (left.ends[-1] - left.ends[0]),
        _WHOLE: finished.seconds,
        _FIRST: left.ends[0] - finished.began,
        _RIGHT: share_right(case, left.weights, *test),
    }


def _medians(rows: Sequence[Figures]) -> Figures:
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


if __name__ == "__main__":
    main()
