"""Speed of the models that Hermes' devices end with: a federation, then timings of every device's model.

    python -m benchmarks.hermes_speed [MODEL] [--rounds 14] [--kept 0.3] [--turns 60]

VGG11 or CNN4 on Fashion-MNIST, five devices, two labels a device. Every device prunes its own channels from round to
round down to --kept of the parameters (`edgefl.simulation`: real training and masks). Then the whole model and those of
all devices predict one sample on onnxruntime: two threads, each in a process of its own, in turns.
"""

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.accuracy_study.data import dataset_of
from edgefl.artifacts.submodel import make_submodel
from edgefl.bench.engine_job import EngineJob, command_of
from edgefl.bench.engine_processes import EngineProcess, run_interleaved_and_stop
from edgefl.data import Dataset, Samples
from edgefl.federation import EvaluationSettings, FederationSettings, RoundSettings, SelectionSettings
from edgefl.masks import full_mask
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
        processes = {device: EngineProcess(_command(path)) for device, path in paths.items()}
        times = run_interleaved_and_stop(processes, options.turns)
    whole = times["whole"].median
    print(f"\n{'':<12}{'parameters':>12}{'multiply-adds':>15}{'ms':>9}{'faster':>9}")
    for device, mask in masks.items():
        part, full = mask.cost, masks["whole"].cost
        print(
            f"{device:<12}{part.parameters / full.parameters:>12.1%}"
            f"{part.forward_multiply_adds / full.forward_multiply_adds:>15.1%}"
            f"{1000 * times[device].median:>9.3f}{whole / times[device].median:>8.2f}x"
        )
    ratios = [whole / times[device].median for device in federation.masks]
    print(
        f"faster than the whole model: median {statistics.median(ratios):.2f}x, {min(ratios):.2f} to {max(ratios):.2f}"
    )


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
