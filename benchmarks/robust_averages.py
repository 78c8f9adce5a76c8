"""What each average gives when some of ten devices attack: the accuracy of the last model on the digits' test samples.

`python -m benchmarks.robust_averages [--rounds 20] [--seeds 3]`. Ten devices with unequal data (Dirichlet 0.5) train a
perceptron with FedAvg. One or three of them do, in every round:

    samples claimed   send the model back as it came, and claim 2^53 - 1 samples
    sign flip         send the opposite of what they learned
    both              send the opposite of what they learned, and claim 2^53 - 1 samples
    scaled update     the same, enlarged to ten times the norm of the model, the most that `limits.most_movement` allows
    random noise      a random change with the norm of the model
    label flip        train on labels that are counted backwards
"""

import argparse
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from device_runtime.local_data import LocalData
from edgefl.data import Dataset, Samples, load
from edgefl.federation.settings import EvaluationSettings, FederationSettings, RoundSettings, SelectionSettings
from edgefl.masks import Array
from edgefl.model_graph import TensorRole
from edgefl.simulation import FleetDevice, SimulatedFederation, fleet_of
from edgefl.simulation.availability import Always
from edgefl.simulation.built_in_models import built_in_bundle
from edgefl.simulation.job_dispatch import DispatchedJob
from edgefl.strategies import ClientUpdate, strategy_of, submodel_norm
from edgefl.strategies.update_checks import movement
from edgefl.values import LARGEST_INTEGER, LocalWork, Setting
from edgefl.wire import Dense, ResultBody

DEVICES = 10
MOST_MOVEMENT = 10.0
AVERAGES: dict[str, dict[str, Setting]] = {
    "mean": {},
    "clipped": {"average": "clipped", "clip_update_norm": 0.5},
    "trimmed": {"average": "trimmed", "trim": 0.3},
    "median": {"average": "median"},
}
Attack = Callable[[ClientUpdate, np.random.Generator], ClientUpdate]


def _moved(update: ClientUpdate, change: Callable[[str, Array], Array]) -> ClientUpdate:
    """Return an update whose weights, not its statistics, changed otherwise."""
    tensors = dict(update.tensors)
    for name, payload in tensors.items():
        spec = update.mask.graph.tensor[name]
        if isinstance(payload, Dense) and spec.role is not TensorRole.STATISTIC and spec.dtype.startswith("float"):
            base = update.base[name]
            tensors[name] = Dense((base + change(name, payload.array - base)).astype(base.dtype))
    return replace(update, tensors=tensors)


def _claiming(update: ClientUpdate) -> ClientUpdate:
    return replace(update, result=replace(update.result, samples=LARGEST_INTEGER))


def _sign_flip(update: ClientUpdate, _: np.random.Generator) -> ClientUpdate:
    return _moved(update, lambda name, learned: -learned)


def _scaled(update: ClientUpdate, _: np.random.Generator) -> ClientUpdate:
    norm = max(1.0, submodel_norm(update.mask, update.base))
    factor = np.float32(0.99 * MOST_MOVEMENT * norm / max(movement(update), 1e-12))
    return _moved(update, lambda name, learned: -factor * learned)


def _noise(update: ClientUpdate, generator: np.random.Generator) -> ClientUpdate:
    made = _moved(update, lambda name, learned: generator.standard_normal(learned.shape).astype(np.float32))
    factor = np.float32(submodel_norm(update.mask, update.base) / movement(made))
    return _moved(made, lambda name, noise: factor * noise)


ATTACKS: dict[str, Attack | None] = {
    "none": None,
    "samples claimed": lambda update, _: _claiming(_moved(update, lambda name, learned: 0 * learned)),
    "sign flip": _sign_flip,
    "sign flip, samples claimed": lambda update, generator: _claiming(_sign_flip(update, generator)),
    "scaled update": _scaled,
    "random noise": _noise,
    "label flip": lambda update, _: update,
}


class AttackedFederation(SimulatedFederation):
    """A federation some of whose devices send something else than they learned."""

    attack: Attack | None = None
    attackers: frozenset[str] = frozenset()
    generator = np.random.default_rng(0)

    def _update(self, dispatched: DispatchedJob, body: ResultBody) -> ClientUpdate:
        update = super()._update(dispatched, body)
        if self.attack is None or update.device_id not in self.attackers:
            return update
        return self.attack(update, self.generator)


@cache
def _data() -> Dataset:
    return load("digits")


def _flipped(device: FleetDevice) -> FleetDevice:
    data = device.data.dataset
    wrong = Samples(data.train.features, data.classes - 1 - data.train.labels)
    return replace(device, data=LocalData(replace(data, train=wrong), device.data.split))


def accuracy(average: str, attack: str, count: int, seed: int, rounds: int) -> float:
    """Return the accuracy of the last model if the last `count` devices attack."""
    fleet = fleet_of(_data(), clients=DEVICES, scheme="dirichlet:0.5", seed=seed)
    honest, others = fleet[: DEVICES - count], fleet[DEVICES - count :]
    if attack == "label flip":
        others = tuple(map(_flipped, others))
    settings = FederationSettings(
        name="attacked",
        seed=seed,
        rounds=RoundSettings(count=rounds, deadline=1e6),
        selection=SelectionSettings(devices=DEVICES),
        work=LocalWork(epochs=2, batch_size=16),
        evaluation=EvaluationSettings(data="digits", every=rounds),
    )
    strategy = strategy_of("fedavg", {"learning_rate": 0.1, **AVERAGES[average]})
    federation = AttackedFederation(
        built_in_bundle("digits_mlp"), (*honest, *others), strategy, settings, availability=Always()
    )
    federation.attack = ATTACKS[attack] if count else None
    federation.attackers = frozenset(device.device_id for device in others)
    federation.generator = np.random.default_rng(seed)
    with federation:
        score = list(federation.rounds())[-1].score
    assert score is not None
    return score.accuracy


def rows(attackers: Sequence[int], seeds: int, rounds: int) -> list[tuple[str, list[float]]]:
    """Return for each attack the mean accuracy with each average."""
    found = []
    for attack in ATTACKS:
        for count in [0] if attack == "none" else attackers:
            means = [
                statistics.fmean(accuracy(average, attack, count, seed, rounds) for seed in range(seeds))
                for average in AVERAGES
            ]
            found.append((f"{attack}, {count} of {DEVICES}" if count else attack, means))
            print(f"{found[-1][0]:<40} " + " ".join(f"{100 * mean:8.1f}%" for mean in means), flush=True)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    print(f"{'accuracy with the average':<40} " + " ".join(f"{average:>9}" for average in AVERAGES))
    rows((1, 3), args.seeds, args.rounds)


if __name__ == "__main__":
    main()
