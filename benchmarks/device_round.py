"""Overhead of a device's round beyond its training steps, and memory saved by narrower models. CNN4.

    python -m benchmarks.device_round [--rounds 7]

Overhead: a whole local round (data, rule, telemetry, checkpoints) against a bare loop over the same engine's steps on
batches that are ready, in turns. Memory: the peak above the baseline of a round at batch 16, whole and at a quarter of
the width, each in a process of its own (the kernel's VmHWM, reset before the round).
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from device_runtime.engines import ThreadSettings, open_engine
from device_runtime.local_data import LocalData
from device_runtime.telemetry import MemoryWatch
from device_runtime.trainer import Trainer, TrainingTask
from edgefl.artifacts.bundle import INFER, Bundle, read_bundle
from edgefl.artifacts.submodel import bundle_weights, make_submodel
from edgefl.data import Dataset, Normalisation, Samples
from edgefl.masks import Mask, full_mask, gather, leading_channels
from edgefl.values import ClientPlan, LocalWork, RuleSettings

THREADS = 2
SAMPLES, BATCH, EPOCHS = 1280, 64, 2
RULES = {
    "sgd": RuleSettings(name="sgd", settings={"learning_rate": 0.03, "momentum": 0.9}),
    "masked_noise": RuleSettings(name="masked_noise", settings={"learning_rate": 0.1}),
}


def main() -> None:
    """Print both, or be the process that measures memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--memory", nargs=2, metavar=("BUNDLE", "WIDTH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        print(_peak(Path(options.memory[0]), float(options.memory[1])))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cnn4.zip"
        _export(path)
        _overhead(read_bundle(path), Path(folder), options.rounds)
        _memory(path)


def _export(path: Path) -> None:
    """Export in another process: torch's threads and memory have no place in this one."""
    code = (
        "import sys; from pathlib import Path; from export.model_source import open_source; "
        "from export.bundle import make_bundle; from edgefl.artifacts.bundle import write_bundle; "
        "s = open_source('cnn4'); write_bundle(make_bundle(s.model, s.name, s.example), Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(path)], check=True)


def _overhead(bundle: Bundle, folder: Path, rounds: int) -> None:
    data = _data()
    tasks: dict[str, Callable[[], object]] = {"bare steps": _bare(bundle, data)}
    for name, rule in RULES.items():
        tasks[name] = _round(bundle, data, rule, folder / name)
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for turn in range(rounds + 1):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    bare = statistics.median(seconds["bare steps"])
    print(
        f"a round of {EPOCHS * SAMPLES // BATCH} steps, batch {BATCH}, {THREADS} threads, medians of {rounds} in turns"
    )
    for name, values in seconds.items():
        middle = statistics.median(values)
        print(f"  {name:<14} {middle:7.3f} s   {middle / bare:.3f} of the bare steps")


def _bare(bundle: Bundle, data: LocalData) -> Callable[[], object]:
    mask = full_mask(bundle.graph)
    step = open_engine("onnx", ThreadSettings(THREADS)).train_step(bundle.files["train.onnx"], mask)
    weights = gather(mask, bundle_weights(bundle))
    batches = [batch for epoch in range(EPOCHS) for batch in data.epoch(0, epoch, BATCH)]

    def loop() -> None:
        for batch in batches:
            step(weights, batch)

    return loop


def _round(bundle: Bundle, data: LocalData, rule: RuleSettings, folder: Path) -> Callable[[], object]:
    task = _task(bundle, full_mask(bundle.graph), rule, LocalWork(epochs=EPOCHS, batch_size=BATCH))
    trainer = Trainer(open_engine("onnx", ThreadSettings(THREADS)), data, folder, threads=THREADS, device_id="here")

    def work() -> None:
        trainer.run(task)
        trainer.forget(task.plan.task_id)

    return work


def _task(bundle: Bundle, mask: Mask, rule: RuleSettings, work: LocalWork) -> TrainingTask:
    plan = ClientPlan(
        task_id="task",
        device_id="here",
        round=0,
        model=bundle.graph.digest,
        mask=mask.digest,
        rule=rule,
        deadline_seconds=3600,
        seed=1,
        work=work,
    )
    graph = make_submodel(bundle, mask).training_graph
    return TrainingTask(plan, mask, gather(mask, bundle_weights(bundle)), graph, bundle.files[INFER])


def _data() -> LocalData:
    """Return noise in the shape of Fashion-MNIST, as bytes: the same work as real images."""
    generator = np.random.default_rng(0)
    features = generator.integers(0, 256, (SAMPLES, 1, 28, 28), dtype=np.uint8)
    samples = Samples(features, generator.integers(0, 10, SAMPLES))
    none = Samples(features[:0], samples.labels[:0])
    normal = Normalisation(mean=(0.286,), std=(0.353,))
    return LocalData.whole(Dataset("noise", samples, none, 10, normalisation=normal), validation=0.0)


def _memory(path: Path) -> None:
    peaks = {}
    for width in (1.0, 0.25):
        command = [sys.executable, "-m", "benchmarks.device_round", "--memory", str(path), str(width)]
        runs = [int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(3)]
        peaks[width] = statistics.median(runs)
    print("peak memory of training above the baseline, batch 16, medians of 3 processes")
    print(f"  whole {peaks[1.0] / 1e6:.1f} MB   quarter of the width {peaks[0.25] / 1e6:.1f} MB", end="   ")
    print(f"{peaks[0.25] / peaks[1.0]:.2f} of the whole")


def _peak(path: Path, width: float) -> int:
    bundle = read_bundle(path)
    mask = leading_channels(bundle.graph, width)
    part, graph = gather(mask, bundle_weights(bundle)), make_submodel(bundle, mask).training_graph
    data, engine = _data(), open_engine("onnx", ThreadSettings(THREADS))
    batches = list(data.epoch(0, 0, 16))[:10]
    del bundle
    watch = MemoryWatch()
    step = engine.train_step(graph, mask)
    for batch in batches:
        gradients = step(part, batch).gradients
        for name, gradient in gradients.items():
            part[name] -= np.float32(0.01) * gradient
    found = watch.stop()
    return found.peak_bytes - found.baseline_bytes


if __name__ == "__main__":
    main()
