"""A small model and its tasks, as a coordinator would hand them out: what device tests train."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from device_runtime.engines import ThreadSettings, open_engine
from device_runtime.local_data import LocalData
from device_runtime.trainer import Trainer, TrainingTask
from edgefl.artifacts.bundle import INFER, Bundle, read_bundle
from edgefl.artifacts.features import feature_graph
from edgefl.artifacts.submodel import bundle_weights, make_submodel
from edgefl.data import Dataset, load
from edgefl.masks import Mask, full_mask, gather
from edgefl.values import ClientPlan, LocalWork, RuleSettings, digest_of

BUNDLE = Path(__file__).parent / "small_cnn.zip"
"""A convolutional network for the 8x8 digits, exported by `tests/export/test_small_cnn.py`."""


@cache
def bundle() -> Bundle:
    return read_bundle(BUNDLE)


@cache
def digits() -> Dataset:
    return load("digits")


def plan_of(mask: Mask, **changes: Any) -> ClientPlan:
    fields: dict[str, Any] = {
        "task_id": "task-1",
        "device_id": "pi-1",
        "round": 0,
        "model": mask.graph.digest,
        "mask": mask.digest,
        "rule": RuleSettings(name="sgd", settings={"learning_rate": 0.1, "momentum": 0.9}),
        "deadline_seconds": 600,
        "seed": 11,
        "work": LocalWork(epochs=2, batch_size=32),
    }
    return ClientPlan(**(fields | changes))


def task_of(mask: Mask | None = None, **changes: Any) -> TrainingTask:
    mask = full_mask(bundle().graph) if mask is None else mask
    plan = plan_of(mask, **changes)
    if plan.rule.name in ("feature_sums", "head_gradients", "class_prior"):
        graph = feature_graph(bundle().files[INFER], bundle().graph)
    else:
        graph = make_submodel(bundle(), mask).training_graph
    weights = gather(mask, bundle_weights(bundle()))
    plan = replace(plan, graph=digest_of(graph))
    return TrainingTask(plan, mask, weights, graph, bundle().files[INFER], down_bytes=1000)


def local_data(samples: int = 400) -> LocalData:
    whole = digits()
    few = np.arange(samples)
    train = type(whole.train)(whole.train.features[few], whole.train.labels[few])
    return LocalData.whole(Dataset(whole.name, train, whole.test, whole.classes, normalisation=whole.normalisation))


def trainer(folder: Path, data: LocalData | None = None, **changes: Any) -> Trainer:
    """A trainer that, unless told otherwise, writes a checkpoint after every step."""
    data = local_data() if data is None else data
    engine = changes.pop("engine", None) or open_engine("onnx", ThreadSettings(1))
    options = {"checkpoint_seconds": 0.0} | changes
    return Trainer(engine, data, folder, threads=1, device_id="pi-1", **options)
