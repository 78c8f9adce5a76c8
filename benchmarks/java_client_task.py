"""A training task in a folder, and the Python agent's steps of it: for `benchmarks.java_client`.

    python -m benchmarks.java_client_task FOLDER

The folder is the one that the Java client's `bench` reads. Every line of standard input is a number of steps; the
answer says how long they took, and the last loss. A step is all of it: samples become a batch, the graph runs, the rule
moves the weights. An environment without torch imports this file too, so what writes a task imports it late.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from device_runtime.engines import ThreadSettings, open_engine
from device_runtime.local_data import LocalData
from edgefl.data import Dataset, Normalisation, Samples
from edgefl.local_rules import TrainingInput, rule_of
from edgefl.masks import Mask
from edgefl.model_graph import ModelGraph
from edgefl.values import RuleSettings, loads
from edgefl.wire import BodyKind, decode, decode_mask

__all__ = ["SAMPLES", "write_samples", "write_task"]

SAMPLES = 1280
MEAN, STD, SCALE = 0.286, 0.353, 255
SEED = 1


def write_task(folder: Path, model: str, batch: int, threads: int) -> None:
    """Export a model, and write a task that trains all of it on noise in the shape of Fashion-MNIST."""
    from edgefl.artifacts.bundle import GRAPH
    from edgefl.artifacts.submodel import bundle_weights, make_submodel
    from edgefl.federation.submodel_document import submodel_document
    from edgefl.masks import full_mask, gather
    from edgefl.values import dumps
    from edgefl.wire import encode_mask, encode_weights
    from export.bundle import make_bundle
    from export.model_source import open_source

    source = open_source(model)
    bundle = make_bundle(source.model, source.name, source.example)
    mask = full_mask(bundle.graph)
    weights = gather(mask, bundle_weights(bundle))
    files = {
        "graph.onnx": make_submodel(bundle, mask).training_graph,
        "weights.safetensors": encode_weights(weights, {"model": bundle.graph.digest}),
        "submodel.json": dumps(submodel_document(mask, {})).encode(),
        "mask": encode_mask(mask),
        GRAPH: bundle.files[GRAPH],
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    shape = [int(size) for size in bundle.manifest.input_shape]
    write_samples(folder / "samples.npz", shape, bundle.manifest.outputs)
    normal = {"mean": [MEAN], "std": [STD], "scale": SCALE}
    sample: dict[str, Any] = {"shape": shape, "dtype": "float32", "raw_dtype": "uint8", "normalisation": normal}
    sample["classes"] = bundle.manifest.outputs
    settings = {"learning_rate": 0.003, "momentum": 0.9}
    # Epochs enough that no run comes to their end.
    task = {
        "rule": "sgd",
        "settings": settings,
        "batch_size": batch,
        "epochs": 20_000,
        "seed": SEED,
        "threads": threads,
    }
    for name, document in (("sample.json", sample), ("task.json", task)):
        (folder / name).write_text(json.dumps(document), encoding="utf-8")


def write_samples(path: Path, shape: list[int], classes: int) -> None:
    """Write noise as bytes: the same work as real images."""
    generator = np.random.default_rng(0)
    x = generator.integers(0, 256, (SAMPLES, *shape), dtype=np.uint8)
    np.savez(path, x=x, y=generator.integers(0, classes, SAMPLES), x_test=x[:1], y_test=np.zeros(1, np.int64))


def _data(folder: Path) -> LocalData:
    with np.load(folder / "samples.npz") as found:
        samples = Samples(found["x"], found["y"])
    classes: int = json.loads((folder / "sample.json").read_text(encoding="utf-8"))["classes"]
    none = Samples(samples.features[:0], samples.labels[:0])
    normal = Normalisation(mean=(MEAN,), std=(STD,))
    return LocalData.whole(Dataset("noise", samples, none, classes, normalisation=normal), validation=0.0)


def _steps(folder: Path, ready: Callable[[str], None]) -> Callable[[int], float]:
    """Load the task, and return what takes steps of it."""
    task: dict[str, Any] = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    mask: Mask = decode_mask(
        (folder / "mask").read_bytes(), loads(ModelGraph, (folder / "model_graph.json").read_bytes())
    )
    weights = decode((folder / "weights.safetensors").read_bytes(), kind=BodyKind.WEIGHTS).arrays
    data, engine = _data(folder), open_engine("onnx", ThreadSettings(task["threads"]))
    rule = rule_of(RuleSettings(name=task["rule"], settings=task["settings"]))
    inputs = TrainingInput(mask, weights, task["seed"], steps=task["epochs"] * SAMPLES // task["batch_size"])
    state = rule.begin(inputs)
    step = engine.train_step((folder / "graph.onnx").read_bytes(), mask)
    batches = (
        batch for epoch in range(task["epochs"]) for batch in data.epoch(task["seed"], epoch, task["batch_size"])
    )
    ready(engine.name)

    def take(count: int) -> float:
        return [rule.step(inputs, state, next(batches), step).loss for _ in range(count)][-1]

    return take


def main() -> None:
    """Take steps as standard input says."""
    take = _steps(Path(sys.argv[1]), lambda engine: _say({"ready": {"engine": engine}}))
    for line in sys.stdin:
        began = time.perf_counter()
        loss = take(int(line))
        _say({"seconds": time.perf_counter() - began, "loss": loss})


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
