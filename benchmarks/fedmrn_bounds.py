"""FedMRN's noise bound: does one bound do for every model?

    python -m benchmarks.fedmrn_bounds [--part perceptron,convolutional] [--workers 2] [--out runs/fedmrn-bounds]

The paper has one bound for all its models: 0.01 for binary masks, 0.005 for signed ones. Noise can move a weight no
further than the bound in a round, and small networks have larger weights.

perceptron      64-32-10 on handwritten digits: the quick study's set-up `digits`
convolutional   three convolutions on Fashion-MNIST of 8x8 pixels: the quick study's set-up `uplink-small`

Accuracy of the global model in per cent, mean and deviation over three seeds, by mask, learning rate and bound.
"""

import argparse
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.accuracy_study.entries import Entry
from benchmarks.accuracy_study.figures import figures_of
from benchmarks.accuracy_study.models import prepare
from benchmarks.accuracy_study.run import Run, run
from benchmarks.accuracy_study.setups import QUICK, Setup

BOUNDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
MASKS = ("binary", "signed")
SEEDS = (0, 1, 2)
PARTS: Mapping[str, tuple[Setup, Sequence[float]]] = {
    "perceptron": (QUICK["digits"], (0.1, 0.3)),
    "convolutional": (QUICK["uplink-small"], (0.1,)),
}
"""The set-up of each part, and the learning rates that it is run with."""


def main() -> None:
    """Run the parts that are asked for, and print a table for each."""
    args = _arguments()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # one run a core
    for part in args.part:
        _table(*PARTS[part], args)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", type=lambda text: text.split(","), default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=Path("runs/fedmrn-bounds"))
    args = parser.parse_args()
    if unknown := set(args.part) - set(PARTS):
        parser.error(f"--part has no {min(unknown)!r}; there are: {', '.join(PARTS)}")
    return args


def _table(setup: Setup, rates: Sequence[float], args: argparse.Namespace) -> None:
    args.out.mkdir(parents=True, exist_ok=True)
    prepare(setup.model, list(SEEDS), args.out)
    rows = [(masks, rate, _entries(setup, masks, rate)) for masks in MASKS for rate in rates]
    rows.append(("FedAvg", 0.1, [Entry(setup=setup.name, label="fedavg", strategy="fedavg")]))
    print(f"\n{setup.name}, {setup.model}: {setup.about}")
    print(f"{'bound':<20}{''.join(f'{bound:>12g}' for bound in BOUNDS)}")
    with ProcessPoolExecutor(args.workers, multiprocessing.get_context("spawn")) as pool:
        for masks, rate, entries in rows:
            found = pool.map(run, [Run(setup, entry, seed, args.out) for entry in entries for seed in SEEDS])
            values = [figure.values["accuracy"] for figure in figures_of(list(found)).values()]
            cells = "".join(f"{f'{100 * one.mean:.1f} ±{100 * one.deviation:.1f}':>12}" for one in values)
            print(f"{f'{masks}, rate {rate:g}':<20}{cells}", flush=True)


def _entries(setup: Setup, masks: str, rate: float) -> list[Entry]:
    return [
        Entry(
            setup=setup.name,
            label=f"fedmrn {masks} {bound:g}",
            strategy="fedmrn",
            settings={"noise_masks": masks, "noise_bound": bound, "learning_rate": rate},
        )
        for bound in BOUNDS
    ]


if __name__ == "__main__":
    main()
