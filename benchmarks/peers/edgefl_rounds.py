"""The same rounds in EdgeFL's simulation, each worker with one thread.

    python -m benchmarks.peers.edgefl_rounds FOLDER

The model comes exported, as `edgefl export` leaves it.
"""

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers.case import Arrays, Case, leave, read_case
from device_runtime.local_data import LocalData
from edgefl.artifacts.bundle import read_bundle
from edgefl.artifacts.submodel import bundle_weights
from edgefl.data import ClientSplit, Dataset
from edgefl.data.normalisation import Normalisation
from edgefl.data.samples import Samples, frozen
from edgefl.federation import EvaluationSettings, FederationSettings, RoundSettings, SelectionSettings
from edgefl.simulation import DeviceClass, FleetDevice, SimulatedFederation, simulated_profile
from edgefl.strategies import strategy_of
from edgefl.values import LocalWork

__all__ = ["BUNDLE", "main"]

BUNDLE = "model.zip"
_NOBODY = np.zeros(0, np.int64)


def main(folder: Path) -> None:
    """Do the rounds."""
    case, x, y, weights = read_case(folder)
    ends, trained = _rounds(folder, case, _fleet(case, x, y), weights)
    leave(folder, "edgefl", ends, trained)


def _rounds(folder: Path, case: Case, fleet: list[FleetDevice], weights: Arrays) -> tuple[list[float], Arrays]:
    """Run the federation: the one place that knows how a simulation is started."""
    settings = FederationSettings(
        name="peers",
        rounds=RoundSettings(count=case.rounds, deadline=1e6),
        selection=SelectionSettings(devices=case.per_round),
        work=LocalWork(epochs=1, batch_size=case.batch),
        evaluation=EvaluationSettings(data="none", every=case.rounds),
    )
    strategy = strategy_of("fedavg", {"learning_rate": case.rate, "width": "full"})
    bundle = read_bundle(folder / BUNDLE)
    begin = dict(bundle_weights(bundle)) | dict(weights)  # the others do not count the batches of a norm
    with SimulatedFederation(bundle, fleet, strategy, settings, workers=case.workers, weights=begin) as federation:
        ends = [time.time() for _ in federation.rounds()]
        return ends, federation.model.weights


def _fleet(case: Case, x: NDArray[np.uint8], y: NDArray[np.int64]) -> list[FleetDevice]:
    """Return devices that train on all that they have, and judge nothing."""
    everything = Samples(frozen(np.array(x)), y)
    nothing = Samples(everything.features[:0], y[:0])
    normalisation = Normalisation((case.mean,), (case.deviation,))
    data = Dataset("peers", everything, nothing, 10, normalisation=normalisation)
    profile = simulated_profile(DeviceClass(memory_bytes=2**40))
    return [
        FleetDevice(f"device-{number:03d}", profile, LocalData(data, ClientSplit(own, _NOBODY, _NOBODY)), _NOBODY)
        for number, own in enumerate(_shares(case))
    ]


def _shares(case: Case) -> NDArray[Any]:
    return np.arange(case.clients * case.samples).reshape(case.clients, case.samples)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
