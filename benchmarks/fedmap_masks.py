"""FedMAP's learned masks: do they help, and if not, why?

    python -m benchmarks.fedmap_masks [--part tried,looked-into] [--workers 2] [--out runs/fedmap-masks]

The paper publishes neither lambda, eta_m, tau nor K. All rows are a perceptron (64-128-64-10) on Fashion-MNIST of 8x8
pixels in the devices and data of the quick set-up `sizes`, 40 rounds in all, masks and weights together, and one
optimiser: plain SGD at 0.3, the best of 0.1, 0.3 and 1 for the row without learning.

tried           accuracy of extracted submodels, mean of two tuning seeds
confirmed       the best rows on four other seeds, with the difference to the row without learning, seed by seed
convolutional   the same on the network and rate of the quick study
looked-into     a mask phase at trained weights (`fedmap_probabilities.py`): what devices learn, and what is left of it
"""

import argparse
import itertools
import multiprocessing
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.accuracy_study.entries import Entry, Limit
from benchmarks.accuracy_study.figures import Figures, figures_of
from benchmarks.accuracy_study.run import Run, run
from benchmarks.accuracy_study.setups import QUICK, Setup
from benchmarks.accuracy_study.tuning import TUNING_SEEDS
from benchmarks.accuracy_study.verdicts import against, series_points
from edgefl.values import Setting

PARTS = ("tried", "confirmed", "convolutional", "looked-into")
SEEDS = (0, 1, 2, 3)
_ROUNDS = 40
_FIRST = 15
"""Rounds of weights before masks are made, where there are any: chosen once, and the same for all rows."""
_NO_GRADIENT = 1e-9
"""A mask rate at which nothing is learned: masks change by the draws alone."""
_SETUP = replace(
    QUICK["sizes"],
    model="mlp3",
    rounds=_ROUNDS,
    evaluate_every=_ROUNDS,
    matched=10,
    settings={"learning_rate": 0.3, "schedule": "constant"},
)
_CONVOLUTIONAL = replace(QUICK["sizes"], rounds=_ROUNDS, evaluate_every=_ROUNDS, matched=10)
_Settings = Mapping[str, Setting]
_UNLEARNED: _Settings = {"drawing": "top", "mask_rounds": 0}
_ONCE: _Settings = {"drawing": "top", "weight_rounds": 10_000}
"""Masks are learned in one phase, and submodels are nested."""
_WARM: _Settings = {"first_weight_rounds": _FIRST}
_MAGNITUDE: _Settings = {**_WARM, "first_probabilities": "magnitude"}
_CHANNEL: _Settings = {"granularity": "channel"}


def _weights() -> Iterator[tuple[str, _Settings]]:
    for rate in (0.1, 1.0):
        yield f"nested, not learned, learning rate {rate:g}", {**_UNLEARNED, "learning_rate": rate}
    yield "nested, not learned", _UNLEARNED
    for rate in (_NO_GRADIENT, 1.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e6):
        yield f"nested, learned in 4 rounds at {rate:g}", {**_ONCE, "mask_rounds": 4, "mask_rate": rate}
    learned = {**_ONCE, "mask_rounds": 4, "mask_rate": 1e5}
    yield "nested, learned in 10 rounds at 100000", {**learned, "mask_rounds": 10}
    yield "nested, learned in 4 rounds at 100000, lambda 20", {**learned, "prior": 20.0}
    yield "nested, learned at 100000, straight through", {**learned, "gradient": "straight_through"}
    yield "drawn anew (paper), not learned", {"mask_rounds": 0}
    for rate in (_NO_GRADIENT, 1.0, 1e2, 1e3, 1e4, 1e5, 1e6):
        yield f"drawn anew (paper), phases of 5 and 5 at {rate:g}", {"mask_rate": rate}
    yield "nested after 15 rounds, not learned", {**_UNLEARNED, **_WARM}
    warm = {**_ONCE, **_WARM}
    for rate in (_NO_GRADIENT, 1e2, 1e4, 1e5, 1e6):
        yield f"nested after 15 rounds, learned in 4 at {rate:g}", {**warm, "mask_rounds": 4, "mask_rate": rate}
    yield "nested after 15 rounds, learned in 10 at 100000", {**warm, "mask_rounds": 10, "mask_rate": 1e5}
    yield "by first magnitude, not learned", {**_UNLEARNED, "first_probabilities": "magnitude"}
    yield "by magnitude after 15 rounds, not learned", {**_UNLEARNED, **_MAGNITUDE}
    yield "by magnitude, not learned, drawn anew", {"mask_rounds": 0, **_MAGNITUDE}
    learned = {**_ONCE, **_MAGNITUDE, "mask_rounds": 2}
    for rate in (_NO_GRADIENT, 1e1, 1e2, 1e3, 1e4, 1e5):
        yield f"by magnitude, learned in 2 rounds at {rate:g}", {**learned, "mask_rate": rate}
    yield "by magnitude, learned in 8 rounds at 100", {**learned, "mask_rate": 100.0, "mask_rounds": 8}
    for prior in (20.0, 200.0):
        yield f"by magnitude, learned at 100, lambda {prior:g}", {**learned, "mask_rate": 100.0, "prior": prior}
    yield (
        "by magnitude, learned at 100, lambda 20, straight through",
        {**learned, "mask_rate": 100.0, "prior": 20.0, "gradient": "straight_through"},
    )


def _channels() -> Iterator[tuple[str, _Settings]]:
    yield "channels: nested, not learned", _UNLEARNED
    for rate in (_NO_GRADIENT, 0.01, 0.1, 1.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e6):
        yield f"channels: nested, learned in 4 rounds at {rate:g}", {**_ONCE, "mask_rounds": 4, "mask_rate": rate}
    warm = {**_ONCE, **_WARM, "mask_rounds": 4, "mask_rate": 1e5}
    yield "channels: nested after 15 rounds, learned in 4 at 100000", warm
    yield "channels: by magnitude after 15 rounds, not learned", {**_UNLEARNED, **_MAGNITUDE}
    for rate in (_NO_GRADIENT, 1.0, 10.0, 1e4):
        told = {**_ONCE, **_MAGNITUDE, "mask_rounds": 2, "mask_rate": rate}
        yield f"channels: by magnitude, learned in 2 rounds at {rate:g}", told


TRIED: Mapping[str, _Settings] = {
    **dict(_weights()),
    **{label: {**_CHANNEL, **settings} for label, settings in _channels()},
}
"""The settings of every row, by its label."""
CONFIRMED: Sequence[tuple[str, str]] = (
    ("nested, learned in 4 rounds at 100000", "nested, not learned"),
    ("nested, learned in 4 rounds at 100000", "nested, learned in 4 rounds at 1e-09"),
    ("drawn anew (paper), phases of 5 and 5 at 10000", "drawn anew (paper), not learned"),
    ("drawn anew (paper), phases of 5 and 5 at 10000", "drawn anew (paper), phases of 5 and 5 at 1e-09"),
    ("by magnitude after 15 rounds, not learned", "nested, not learned"),
    ("by magnitude, learned at 100, lambda 20, straight through", "by magnitude after 15 rounds, not learned"),
    ("channels: nested, learned in 4 rounds at 10000", "channels: nested, not learned"),
    ("channels: nested, learned in 4 rounds at 10000", "channels: nested, learned in 4 rounds at 1e-09"),
    ("channels: by magnitude after 15 rounds, not learned", "channels: nested, not learned"),
    (
        "channels: by magnitude, learned in 2 rounds at 10000",
        "channels: by magnitude after 15 rounds, not learned",
    ),
)
"""The best rows of their kinds, which are run on other seeds, and the rows that they are compared with."""
_ON_CONVOLUTIONS = (CONFIRMED[0], CONFIRMED[4])


def main() -> None:
    """Run the parts that are asked for, and print them."""
    args = _arguments()
    if "tried" in args.part:
        _figures(_SETUP, list(TRIED), TUNING_SEEDS, args)
    if "confirmed" in args.part:
        _compare(_SETUP, CONFIRMED, args)
    if "convolutional" in args.part:
        _compare(_CONVOLUTIONAL, _ON_CONVOLUTIONS, args)
    if "looked-into" in args.part:
        from benchmarks.fedmap_probabilities import look_into

        _prepare(_SETUP, TUNING_SEEDS[:1], args.out)
        look_into(_SETUP, args.out, TUNING_SEEDS[0])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", type=lambda text: text.split(","), default=list(PARTS), help=", ".join(PARTS))
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=Path("runs/fedmap-masks"))
    args = parser.parse_args()
    if unknown := set(args.part) - set(PARTS):
        parser.error(f"--part has no {min(unknown)!r}; there are: {', '.join(PARTS)}")
    return args


def _figures(setup: Setup, labels: Sequence[str], seeds: Sequence[int], args: argparse.Namespace) -> Figures:
    """Print rows as they end, and return what they reached, with the mean over all sizes as a series of its own."""
    _prepare(setup, seeds, args.out)
    wanted = [Run(setup, _entry(setup, label), seed, args.out) for label in labels for seed in seeds]
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"  # one run a core
    print(f"\n{'accuracy in %':<60}{'mean':>7}{''.join(map(_column, _SETUP.sizes))}")
    results = []
    with ProcessPoolExecutor(args.workers, multiprocessing.get_context("spawn")) as pool:
        for result in pool.map(run, wanted):
            results.append(_with_mean(result))
            if len(results) % len(seeds) == 0:
                _show(figures_of(results[-len(seeds) :]))
    return figures_of(results)


def _prepare(setup: Setup, seeds: Sequence[int], folder: Path) -> None:
    from benchmarks.accuracy_study.models import prepare

    folder.mkdir(parents=True, exist_ok=True)
    prepare(setup.model, list(seeds), folder)


def _entry(setup: Setup, label: str) -> Entry:
    settings = TRIED[label]
    limit = Limit.KEPT if settings.get("granularity") == "channel" else Limit.DENSITY
    return Entry(setup=setup.name, label=label, strategy="fedmap", settings=settings, limit=limit)


def _with_mean(result: dict[str, Any]) -> dict[str, Any]:
    if "error" in result:
        return result
    found = [accuracy for accuracy in result["series"]["size"].values() if accuracy is not None]
    return {**result, "series": {**result["series"], "mean": {"0": statistics.fmean(found)}}}


def _column(size: float) -> str:
    return f"{f'1/{1 / size:.0f}':>7}"


def _show(figures: Figures) -> None:
    """Print a row for each label: the mean over sizes, and the accuracy of every size."""
    for (_, label), figure in figures.items():
        if figure.problems:
            print(f"{label:<60}  {figure.problems[0]}", flush=True)
            continue
        found = [figure.series["mean"][0].mean, *(figure.series["size"][size].mean for size in _SETUP.sizes)]
        print(f"{label:<60}{''.join(f'{100 * share:>7.1f}' for share in found)}", flush=True)


def _compare(setup: Setup, pairs: Sequence[tuple[str, str]], args: argparse.Namespace) -> None:
    """Run rows on the seeds that nothing was chosen by, and print their differences, seed by seed."""
    figures = _figures(setup, list(dict.fromkeys(itertools.chain(*pairs))), SEEDS, args)
    print("\ndifferences, with a 95 % confidence interval")
    for label, base in pairs:
        print(f"{label}, against: {base}")
        for series, place, words in (("mean", 0.0, "mean"), ("size", 0.0625, "1/16")):
            own, other = (series_points(figures, setup.name, row, series, place) for row in (label, base))
            print(f"  {words}: {against(own, other)}")


if __name__ == "__main__":
    main()
