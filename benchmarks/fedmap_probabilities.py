"""A mask phase of FedMAP at trained weights: what devices learn, and what the coordinator is left with.

Called by `fedmap_masks.py`. The weights come from rounds with drawn submodels. Then all devices learn masks as in a
federation, each round from the probabilities of the last. Printed are how far probabilities move, how much devices
agree, and the accuracy on the test samples of submodels that are chosen by

chance         equal probabilities
magnitude      the magnitude of the weights
sensitivity    the sum of (weight x gradient)^2 over batches of all devices, with all weights in use
scores         the mean of what devices learned in the first round: they do not send that
Eq. 9          the counts that they send

with the weights as they are.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.accuracy_study.entries import Entry, Limit
from benchmarks.accuracy_study.run import Run, federation_of
from benchmarks.accuracy_study.setups import Setup
from device_runtime.engines import ThreadSettings
from device_runtime.engines.onnx import open_engine
from edgefl.artifacts.bundle import TRAIN, read_bundle
from edgefl.local_rules import ProbabilisticMasks, TrainingInput, TrainStep
from edgefl.local_rules.mask_generation import logit, sigmoid
from edgefl.local_rules.maskable_weights import top_entries
from edgefl.local_rules.probabilistic_masks import Granularity, magnitudes
from edgefl.local_rules.rule import Batch
from edgefl.masks import Array, Mask, Weights, full_mask
from edgefl.noise import derive
from edgefl.simulation import FleetDevice
from edgefl.strategies.mask_posterior import add_counts, initial_belief, probabilities, sent_probabilities
from edgefl.wire import Payload

_RATES = (1e-9, 1e3, 1e4, 1e5)
_SIZES = (0.25, 0.125, 0.0625)
_ROUNDS = 5
_STEPS = 10
_DEVICES = 20
_CHANCES = 5


@dataclass(frozen=True, slots=True)
class _Trained:
    """Trained weights, the devices, and the engine."""

    mask: Mask
    weights: Weights
    fleet: Sequence[FleetDevice]
    run: TrainStep
    batch: int

    def batches(self, device: FleetDevice, seed: int) -> Iterator[Batch]:
        """Yield batches of a device's samples without end."""
        own, generator = device.data.split.train, np.random.default_rng(seed)
        while True:
            x, y = device.data.dataset.batch(generator.choice(own, min(self.batch, len(own)), replace=False))
            yield Batch(x, y)


def look_into(setup: Setup, models: Path, seed: int) -> None:
    """Print what a mask phase does to probabilities, and what submodels are worth."""
    trained = _trained(setup, models, seed)
    sizes = magnitudes(trained.mask, trained.weights, Granularity.WEIGHT)
    shapes = {name: array.shape for name, array in sizes.items()}
    columns = "".join(f"{f'1/{1 / size:.0f}':>7}" for size in _SIZES)
    print(f"\n{'submodels of trained weights, accuracy in %':<52}{columns}")
    even = {name: np.zeros(shape) for name, shape in shapes.items()}
    _line("chance", [_accuracies(trained, even, tie) for tie in range(_CHANCES)])
    _line("magnitude", [_accuracies(trained, sizes, 0)])
    _line("sensitivity", [_accuracies(trained, _sensitivity(trained, sizes), 0)])
    for rate in _RATES:
        _phase(trained, shapes, rate)


def _trained(setup: Setup, models: Path, seed: int) -> _Trained:
    entry = Entry(
        setup=setup.name, label="trained", strategy="fedmap", settings={"mask_rounds": 0}, limit=Limit.DENSITY
    )
    with federation_of(Run(setup, entry, seed, models)) as federation:
        for _ in federation.rounds():
            pass
        mask = full_mask(federation.model.graph)
        graph = read_bundle(models / f"{setup.model}.zip").files[TRAIN]
        step = open_engine(ThreadSettings(1)).train_step(graph, mask)
        return _Trained(mask, federation.model.weights, federation.fleet[:_DEVICES], step, setup.batch)


def _sensitivity(trained: _Trained, names: Weights) -> dict[str, Array]:
    total = {name: np.zeros(array.shape) for name, array in names.items()}
    for place, device in enumerate(trained.fleet):
        for batch in itertools.islice(trained.batches(device, place), _STEPS):
            gradients = trained.run(trained.weights, batch).gradients
            for name, sums in total.items():
                sums += np.square(gradients[name] * trained.weights[name], dtype=np.float64)
    return total


def _phase(trained: _Trained, shapes: Mapping[str, tuple[int, ...]], rate: float) -> None:
    """Let devices learn masks for some rounds, and print what became of them."""
    p, scores = probabilities(initial_belief(shapes, 2.0)), list[Weights]()
    belief = initial_belief(shapes, 2.0)
    for number in range(_ROUNDS):
        for place, device in enumerate(trained.fleet):
            learned, counts = _learn(trained, device, p, rate, derive(number, place))
            add_counts(belief, counts, 1.0)
            if number == 0 and _capacity(device) < 1:
                scores.append(learned)
        p = probabilities(belief)
        if number == 0:
            first = p
    moved = np.concatenate([abs(sigmoid(_flat(each)) - 0.5) for each in scores])
    alike = [_agreement(_flat(one), _flat(other)) for one, other in itertools.combinations(scores, 2)]
    print(
        f"eta_m {rate:g}: in a round, a device moves {np.mean(moved > 0):.0%} of its p at all and "
        f"{np.mean(moved > 0.1):.1%} by more than 0.1; two devices' changes of the same p correlate by "
        f"{np.nanmean(alike):+.3f}"
    )
    _spread("p by Eq. 9 after a round", first)
    _spread(f"p by Eq. 9 after {_ROUNDS}", p)
    mean = {name: np.mean([each[name] for each in scores], axis=0) for name in shapes}
    _line("  scores", [_accuracies(trained, mean, 0)])
    _line("  Eq. 9 after a round", [_accuracies(trained, first, 0)])
    _line(f"  Eq. 9 after {_ROUNDS} rounds", [_accuracies(trained, p, 0)])


def _learn(
    trained: _Trained, device: FleetDevice, p: Weights, rate: float, seed: int
) -> tuple[dict[str, Array], Mapping[str, Payload]]:
    """Return the scores that a device learned, as changes, and the counts that it sends."""
    rule = ProbabilisticMasks(learning_rate=rate, capacity=_capacity(device))
    inputs = TrainingInput(trained.mask, trained.weights, seed, steps=_STEPS, extras=sent_probabilities(p))
    state, batches = rule.begin(inputs), trained.batches(device, seed)
    for _ in range(_STEPS):
        rule.step(inputs, state, next(batches), trained.run)
    learned = {name: state.memory[f"s:{name}"] - logit(array, rule.epsilon) for name, array in p.items()}
    return learned, rule.finish(inputs, state, next(batches), trained.run).tensors


def _agreement(one: Array, other: Array) -> float:
    """Return the correlation of two devices' changes, over what both of them moved."""
    both = (one != 0) & (other != 0)
    return float(np.corrcoef(one[both], other[both])[0, 1]) if both.sum() > 2 else np.nan


def _capacity(device: FleetDevice) -> float:
    limit = device.kind.limits.weight_density if device.kind.limits else None
    return 1.0 if limit is None else limit


def _accuracies(trained: _Trained, values: Weights, tie: int) -> list[float]:
    """Return the accuracy of the submodels with the highest values, by size; the rest of the weights is 0."""
    dataset, total = trained.fleet[0].data.dataset, sum(array.size for array in values.values())
    x, y = dataset.batch(np.arange(len(dataset.test)), "test")
    found = []
    for size in _SIZES:
        flags = top_entries(values, round(size * total), tie)
        cut = {name: np.where(where, trained.weights[name], np.float32(0)) for name, where in flags.items()}
        found.append(float(trained.run({**trained.weights, **cut}, Batch(x, y)).correct.mean()))
    return found


def _flat(arrays: Weights) -> Array:
    return np.concatenate([arrays[name].reshape(-1) for name in sorted(arrays)])


def _line(label: str, found: Sequence[Sequence[float]]) -> None:
    print(f"{label:<52}{''.join(f'{100 * share:>7.1f}' for share in np.mean(found, axis=0))}", flush=True)


def _spread(label: str, p: Weights) -> None:
    """Print a histogram of probabilities, in fifths."""
    shares = np.histogram(_flat(p), bins=5, range=(0, 1))[0] / _flat(p).size
    print(f"  {label + ', in fifths of 0 to 1':<50}{' '.join(f'{share:.1%}' for share in shares)}")
