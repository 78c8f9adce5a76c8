"""What the models that Hermes' devices end with cost: a federation, then time, memory and energy of every model.

    python -m benchmarks.hermes_inference [MODEL] [--rounds 14] [--kept 0.3] [--turns 60]

VGG11 or CNN4 on Fashion-MNIST, five devices, two labels a device. Every device prunes its own channels from round to
round down to --kept of the parameters (`edgefl.simulation`: real training and masks). Then the whole model and those of
all devices predict one sample on onnxruntime: two threads, each in a process of its own, in turns. This is what the
paper's Figures 10 and 11 and its Table 3 are about: latency, energy and memory of an inference.
"""

import argparse
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.accuracy_study.data import dataset_of
from edgefl.artifacts.submodel import make_submodel
from edgefl.bench.engine_job import EngineJob, command_of
from edgefl.bench.measurements import EngineMeasurement, MeasuringTime, measure_processes, source_notes
from edgefl.data import Dataset, Samples
from edgefl.errors import EdgeFLError
from edgefl.federation import EvaluationSettings, FederationSettings, RoundSettings, SelectionSettings
from edgefl.masks import Mask, full_mask
from edgefl.simulation import DeviceClass, SimulatedFederation, fleet_of
from edgefl.strategies import strategy_of
from edgefl.values import LocalWork
from export.bundle import make_bundle
from export.model_source import open_source

_DEVICES = 5
_THREADS = 2
_SAMPLES = 60
"""Of each device."""
_WORKERS = 2


def main() -> None:
    """Train, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", choices=["vgg11", "cnn4"], default="vgg11")
    parser.add_argument("--rounds", type=int, default=14)
    parser.add_argument("--kept", type=float, default=0.3)
    parser.add_argument("--turns", type=int, default=60)
    options = parser.parse_args()
    source = open_source(options.model, classes=10)
    bundle = make_bundle(source.model, source.name, source.example)
    data = _fitting(dataset_of("fashion-mnist", _SAMPLES * _DEVICES, 500), source.example.shape[1:])
    fleet = fleet_of(
        data,
        clients=_DEVICES,
        scheme="labels:2",
        classes=[DeviceClass(name="any", memory_bytes=2**40)],
        seed=0,
        matched=100,
    )
    settings = FederationSettings(
        name="hermes",
        rounds=RoundSettings(count=options.rounds, deadline=1e6),
        selection=SelectionSettings(devices=_DEVICES),
        work=LocalWork(epochs=4, batch_size=16),
        evaluation=EvaluationSettings(data="digits", every=options.rounds),
    )
    strategy = strategy_of("hermes", {"learning_rate": 0.01, "momentum": 0.9, "kept_target": options.kept})
    with (
        SimulatedFederation(bundle, fleet, strategy, settings, workers=_WORKERS) as federation,
        tempfile.TemporaryDirectory() as name,
    ):
        for result in federation.rounds():
            accuracy = result.own_accuracy
            print(f"round {result.number + 1}: own accuracy {0 if accuracy is None else accuracy:.1%}", flush=True)
        masks = {"whole": full_mask(bundle.graph), **federation.masks}
        paths = {device: Path(name) / f"{place}.onnx" for place, device in enumerate(masks)}
        for device, mask in masks.items():
            paths[device].write_bytes(make_submodel(bundle, mask, federation.model.weights).inference_model)
        sizes = {device: path.stat().st_size / 2**20 for device, path in paths.items()}
        commands = {device: _command(path) for device, path in paths.items()}
        found, missing = measure_processes(commands, MeasuringTime(turns=options.turns, threads=_THREADS))
    if missing:
        raise EdgeFLError(f"{', '.join(missing)}: {next(iter(missing.values()))}", fix="Run it again.")
    _print(masks, {device: (*_costs(one), sizes[device]) for device, one in found.items()})
    print("\n".join(source_notes(found)))


def _print(masks: Mapping[str, Mask], costs: Mapping[str, Sequence[float]]) -> None:
    """Print a line for every device, and the ratios to the whole model."""
    columns = ("ms", "memory MiB", "mJ", "file MiB")
    print(f"\n{'':<12}{'parameters':>12}{'multiply-adds':>15}" + "".join(f"{column:>12}" for column in columns))
    full = masks["whole"].cost
    for device, mask in masks.items():
        shares = (mask.cost.parameters / full.parameters, mask.cost.forward_multiply_adds / full.forward_multiply_adds)
        figures = "".join(f"{value:>12.3f}" for value in costs[device])
        print(f"{device:<12}{shares[0]:>12.1%}{shares[1]:>15.1%}{figures}")
    for place, column in enumerate(columns):
        ratios = [costs["whole"][place] / costs[device][place] for device in masks if device != "whole"]
        middle = statistics.median(ratios)
        print(f"{column}: the whole model's is {middle:.2f} times as much ({min(ratios):.2f} to {max(ratios):.2f})")


def _costs(one: EngineMeasurement) -> tuple[float, float, float]:
    """Return milliseconds, MiB of memory, and millijoules of one prediction."""
    assert one.energy is not None  # it is measured unless it is switched off
    return 1000 * one.times.median, one.memory["beyond_bytes"] / 2**20, 1000 * one.energy["joules_each"]


def _command(model: Path) -> list[str]:
    job = EngineJob(task="infer", engine="onnx", threads=_THREADS, batch=1, model=str(model))
    return command_of(job, model.with_suffix(".json"))


def _fitting(data: Dataset, shape: Sequence[int]) -> Dataset:
    """Return the images with a frame and as many channels as a model takes."""
    return replace(data, train=_framed(data.train, shape), test=_framed(data.test, shape))


def _framed(samples: Samples, shape: Sequence[int]) -> Samples:
    channels, height, _ = shape
    frame = (height - samples.features.shape[-1]) // 2
    framed = np.pad(samples.features, ((0, 0), (0, 0), (frame, frame), (frame, frame)))
    return Samples(np.repeat(framed, channels, axis=1), samples.labels)


if __name__ == "__main__":
    main()
