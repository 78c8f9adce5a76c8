"""Averaging updates of PreResNet18 (11.2 million parameters), compared with plain numpy addition of the same arrays.

`python -m benchmarks.aggregation [--updates 100] [--rounds 5]`. The plain loop, on one thread, is `total += array` over
the tensors of every update, at the size of the part that it has; ours also subtracts the model, weights every update by
its samples, puts parts where they belong, and divides; large whole tensors on two threads. `by index` does the same as
ours with numpy's indexing and whole tensors. All go through the same arrays, a dozen different updates again and again.

Memory is that of another process, which makes every update when its turn comes: the highest resident memory above what
it had before there was a model, so the model and the update at hand are in it.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from edgefl.bench.timing import medians
from edgefl.masks import Array, Mask, Weights, add_at, full_mask, gather, leading_channels, random_channels
from edgefl.model_graph import ModelGraph
from edgefl.strategies import ClientUpdate, ClientUpdates, Model, RoundContext, strategy_of
from edgefl.values import RuleSettings
from edgefl.wire import Dense
from examples.networks import preresnet18
from tests.values.samples import RESULT

DIFFERENT = 12
ROUND_CONTEXT = RoundContext(round=0, rounds=1, seed=0)
WIDTHS: dict[str, Callable[[ModelGraph, np.random.Generator], Mask]] = {
    "full width": lambda graph, generator: full_mask(graph),
    "leading half of the channels": lambda graph, generator: leading_channels(graph, 0.5),
    "random half of the channels": lambda graph, generator: random_channels(graph, 0.5, generator),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory-of", choices=WIDTHS, help="measure the memory of this process, and print it")
    args = parser.parse_args()
    if args.memory_of:
        print(_models_of_memory(args.memory_of, args.updates))
        return
    graph = preresnet18()
    print(f"{graph.name}: {graph.parameters:,} parameters, {args.updates} updates; medians of {args.rounds} turns")
    print(f"{'milliseconds an update':<30} {'plain loop':>10} {'by index':>10} {'ours':>10} {'speed':>7}   memory")
    for name in WIDTHS:
        found = _milliseconds(graph, name, args.updates, args.rounds)
        times = " ".join(f"{found[task]:10.2f}" for task in ("plain", "index", "ours"))
        memory = " and ".join(f"{_child(name, updates):.2f}" for updates in (10, args.updates))
        print(f"{name:<30} {times} {found['plain'] / found['ours']:6.2f}x   {memory} models")
    print(f"speed: of the plain loop's; memory: with 10 and {args.updates} updates")


def _milliseconds(graph: ModelGraph, name: str, updates: int, rounds: int) -> dict[str, float]:
    """Return what an update takes in each way."""
    model, strategy = _model(graph), strategy_of("fedavg", {})
    different = [_update(model, WIDTHS[name], number) for number in range(DIFFERENT)]
    taken = [different[number % DIFFERENT] for number in range(updates)]
    tasks: dict[str, Callable[[], object]] = {
        "plain": lambda: _plain(taken),
        "index": lambda: _by_index(model, taken),
        "ours": lambda: strategy.combine(model, taken, ROUND_CONTEXT),
    }
    seconds = medians(tasks, rounds=rounds, warm_up=1)
    return {task: 1e3 * seconds[task] / updates for task in tasks}


def _plain(client_updates: ClientUpdates) -> Weights:
    totals: dict[str, Array] = {}
    for update in client_updates:
        for name, payload in update.tensors.items():
            assert isinstance(payload, Dense)
            if name not in totals:
                totals[name] = np.zeros(payload.shape, np.float32)
            totals[name] += payload.array
    return totals


def _by_index(model: Model, client_updates: ClientUpdates) -> Weights:
    sums = {name: np.zeros_like(array) for name, array in model.weights.items()}
    totals = {name: np.zeros_like(array) for name, array in model.weights.items()}
    for update in client_updates:
        samples = np.float32(update.result.samples)
        for name, payload in update.tensors.items():
            assert isinstance(payload, Dense)
            base = gather(update.mask, model.weights, [name])[name]
            add_at(update.mask, name, sums[name], samples * (payload.array - base))
            add_at(update.mask, name, totals[name], samples)
    return {name: array + sums[name] / np.maximum(totals[name], 1) for name, array in model.weights.items()}


def _model(graph: ModelGraph) -> Model:
    generator = np.random.default_rng(0)
    weights = {t.name: generator.standard_normal(t.shape, dtype=np.float32) for t in graph.tensors}
    return Model(graph, weights)


def _update(model: Model, choose: Callable[[ModelGraph, np.random.Generator], Mask], number: int) -> ClientUpdate:
    """Make the update of a device that changed every weight a little."""
    mask = choose(model.graph, np.random.default_rng(number))
    tensors = {}
    for name, part in gather(mask, model.weights).items():
        part *= np.float32(1.01)
        part.flags.writeable = False
        tensors[name] = Dense(part)
    result = replace(RESULT, samples=100 + number)
    return ClientUpdate(f"device-{number}", mask, RuleSettings(name="sgd"), number, model.weights, result, tensors)


@dataclass(frozen=True, slots=True)
class _Made:
    """Updates that are made when their turn comes."""

    model: Model
    name: str
    count: int

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[ClientUpdate]:
        return (_update(self.model, WIDTHS[self.name], number) for number in range(self.count))


def _child(name: str, updates: int) -> float:
    command = [sys.executable, "-m", "benchmarks.aggregation", "--memory-of", name, "--updates", str(updates)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _models_of_memory(name: str, updates: int) -> float:
    graph = preresnet18()
    before = _status("VmRSS")
    model = _model(graph)
    strategy_of("fedavg", {}).combine(model, _Made(model, name, updates), ROUND_CONTEXT)
    return (_status("VmHWM") - before) / sum(weights.nbytes for weights in model.weights.values())


def _status(field: str) -> int:
    """Return a size from Linux's account of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


if __name__ == "__main__":
    main()
