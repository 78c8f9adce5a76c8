"""A server and five clients that do not train: EdgeFL beside Flower, real processes on the loopback.

    python -m benchmarks.peers.flower_deployment [--model mlp] [--rounds 3] [--turns 1]

`edgefl serve` and five agents (`device_runtime.agent`) against Flower's SuperLink and five SuperNodes, each with its
own defaults, without TLS. Clients send back the weights that came with a small number added, so that no body is like
another. `mlp` is a perceptron 64-32-10, `preresnet18` has 11.2 million parameters. EdgeFL syncs every update to disk
before it is acknowledged; Flower keeps its state in memory. Printed are medians:

    seconds a round   from the end of the first round to the end of the last, divided by the rounds between
    MB a round        received on the loopback interface meanwhile, TCP's headers included; whoever else uses it counts
    of the tensors    the same, divided by what the tensors need: five times down, five times up
    server MB         the server's process at its most (PSS)
    server side MB    with all processes that it started: Flower runs its strategy in one of them

The bytes that EdgeFL's coordinator counted itself are those of bodies, in and out, from the first contact on.
"""

import argparse
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import torch

from benchmarks.peers import edgefl_servers, flower_servers
from benchmarks.peers.case import save_arrays
from benchmarks.peers.environment import VERSION, python_with_flower
from benchmarks.peers.loopback import Meter
from benchmarks.peers.processes import Watch
from benchmarks.peers.table import Target, judged, load_average, table
from benchmarks.peers.torch_client import SHAPES
from benchmarks.peers.torch_client import build as build_small
from edgefl.artifacts.bundle import Bundle
from edgefl.artifacts.submodel import bundle_weights
from export.bundle import make_bundle
from export.zoo import ZOO, block_of, build
from export.zoo.seeding import seeded

__all__ = ["main", "parser", "targets_of"]

_CLIENTS = 5
_SECONDS = 900.0
"""After which a contender is given up."""
_OURS, _THEIRS = "EdgeFL", f"Flower {VERSION}"
_TIME, _BYTES, _NEEDED = "seconds a round", "MB a round", "of the tensors"
_SERVER, _SIDE = "server MB", "server side MB"
_DIGITS = {_TIME: 3, _BYTES: 3, _NEEDED: 3, _SERVER: 0, _SIDE: 0}

Figures = dict[str, float]


def main() -> None:
    """Run both, and compare."""
    args = parser().parse_args()
    python_with_flower()
    bundle = _bundle(args.model)
    parameters = sum(array.size for array in bundle_weights(bundle).values())
    print(f"{args.model}, {parameters:,} parameters, {args.rounds} rounds, {args.turns} turns, {load_average()}")
    contenders: Mapping[str, Callable[[Path], Figures]] = {
        _OURS: partial(_edgefl, bundle=bundle, rounds=args.rounds),
        _THEIRS: partial(_flower, bundle=bundle, rounds=args.rounds),
    }
    seen: dict[str, list[Figures]] = {name: [] for name in contenders}
    for _ in range(args.turns):
        for name, contender in contenders.items():
            with tempfile.TemporaryDirectory(prefix="peers-") as folder:
                seen[name].append(contender(Path(folder)))
    figures = {name: _medians(rows) for name, rows in seen.items()}
    print(table(figures, _DIGITS))
    print(judged(targets_of(args.model, figures[_OURS], figures[_THEIRS])))
    print(load_average())


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--model", choices=["mlp", "preresnet18"], default="mlp")
    reader.add_argument("--rounds", type=int, default=3, help="at least 2: the first is not counted")
    reader.add_argument("--turns", type=int, default=1, help="runs of each contender")
    return reader


def targets_of(model: str, ours: Figures, theirs: Figures) -> list[Target]:
    """Return what EdgeFL is to reach beside Flower."""
    return [
        Target("seconds a round, of Flower's", ours[_TIME] / theirs[_TIME], 0.1 if model == "mlp" else 0.2),
        Target("bytes a round, of what the tensors need", ours[_NEEDED], 1.05),
    ]


def _bundle(model: str) -> Bundle:
    with seeded(0):
        network = build_small(model) if model in SHAPES else build(model)
    shape = SHAPES[model] if model in SHAPES else ZOO[model].input_shape
    return make_bundle(network, model, torch.zeros(2, *shape), block_of=block_of)


def _edgefl(folder: Path, bundle: Bundle, rounds: int) -> Figures:
    with edgefl_servers.edgefl_server(folder, bundle, _CLIENTS, rounds) as server:
        with Meter() as meter, Watch([server.process.pid], share=0.05) as watch:
            ends = edgefl_servers.do_rounds(folder, server, _CLIENTS, seconds=_SECONDS)
        counted = edgefl_servers.counted_bytes(server)
    said = f"EdgeFL's coordinator counted {counted / rounds / 1e6:.3f} MB a round"
    print(f"{said}, the first contacts included", flush=True)
    return _figures(ends, meter, watch, bundle)


def _flower(folder: Path, bundle: Bundle, rounds: int) -> Figures:
    weights = folder / "weights.npz"
    save_arrays(weights, bundle_weights(bundle))
    with (
        flower_servers.flower_servers(folder, _CLIENTS) as server,
        Meter() as meter,
        Watch([server.pid], share=0.05) as watch,
    ):
        ends = flower_servers.do_rounds(folder, weights, _CLIENTS, rounds, seconds=_SECONDS)
    return _figures(ends, meter, watch, bundle)


def _figures(ends: Sequence[float], meter: Meter, watch: Watch, bundle: Bundle) -> Figures:
    later = len(ends) - 1
    crossed = meter.between(ends[0], ends[-1]) / later
    needed = 2 * _CLIENTS * sum(array.nbytes for array in bundle_weights(bundle).values())
    return {
        _TIME: (ends[-1] - ends[0]) / later,
        _BYTES: crossed / 1e6,
        _NEEDED: crossed / needed,
        _SERVER: watch.peak_of_roots / 1e6,
        _SIDE: watch.peak_bytes / 1e6,
    }


def _medians(rows: Sequence[Figures]) -> Figures:
    return {key: statistics.median(row[key] for row in rows) for key in rows[0]}


if __name__ == "__main__":
    main()
