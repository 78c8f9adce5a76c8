"""Tasks of the suite's own small model, as a coordinator would dispatch them, and the right result of each.

The right result is what this project's trainer computes with onnxruntime from the same plan and samples. It is computed
once for plans that differ in their names alone.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import as_file, files
from typing import Any

import numpy as np

from device_runtime.engines import ThreadSettings, open_engine
from device_runtime.local_data import LocalData
from device_runtime.trainer import FinishedTask, Trainer, TrainingTask
from edgefl.artifacts.bundle import GRAPH, INFER, TRAIN, Bundle, read_bundle
from edgefl.artifacts.cut import cut_training_graph
from edgefl.artifacts.features import feature_graph
from edgefl.artifacts.submodel import bundle_weights
from edgefl.conformance.samples import conformance_dataset
from edgefl.federation.measurement import MeasurementBodies, make_measurement
from edgefl.federation.submodel_document import submodel_document
from edgefl.local_rules import LocalRule, only_forward, rule_of
from edgefl.masks import Array, Mask, full_mask, gather
from edgefl.noise import derive, symmetric
from edgefl.values import ClientPlan, Digest, LocalWork, RuleSettings, Setting, digest_of, dumps
from edgefl.wire import encode_mask, encode_weights

__all__ = [
    "OfferedTask",
    "conformance_bundle",
    "conformance_measurement",
    "local_samples",
    "offer",
    "right_result",
    "sgd",
]

_NAMED_ONLY: dict[str, Any] = {"task_id": "task", "device_id": "device", "deadline_seconds": 600.0}
_MEASURED_BATCH = 16
_PERTURBATION = 0.01
_ROUND, _ROUNDS = 1, 10
_SEED = 2**63 + 12345
"""Beyond the largest signed 64-bit number, as half of all seeds are."""


@dataclass(frozen=True, slots=True, eq=False)
class OfferedTask:
    """A plan, and everything that it names."""

    plan: ClientPlan
    mask: Mask
    weights: Mapping[str, Array]
    artifacts: Mapping[Digest, bytes] = field(repr=False)
    extras: Mapping[str, Array] = field(default_factory=dict)

    def changed(self, artifacts: Mapping[str, bytes] | None = None, **changes: Any) -> "OfferedTask":
        """Return the task with another plan; `artifacts` are further ones, by the field that names them."""
        contents = artifacts or {}
        changes |= {name: digest_of(content) for name, content in contents.items()}
        more = {digest_of(content): content for content in contents.values()}
        return replace(self, plan=replace(self.plan, **changes), artifacts={**self.artifacts, **more})


@cache
def conformance_bundle() -> Bundle:
    """Return the model: a convolution with batch norm, a hidden layer with dropout, a head."""
    with as_file(files("edgefl.conformance") / "conformance_model.zip") as path:
        return read_bundle(path)


@cache
def conformance_measurement() -> MeasurementBodies:
    """Return the steps of the model that a client times to profile itself."""
    bundle = conformance_bundle()
    return make_measurement(bundle, _MEASURED_BATCH, lambda mask: cut_training_graph(bundle.files[TRAIN], mask))


def local_samples() -> LocalData:
    """Return the samples as a client divides them: a tenth is held out for validation."""
    return LocalData.whole(conformance_dataset())


def sgd(**settings: Setting) -> RuleSettings:
    """Return the settings of plain gradient descent, with changes."""
    return RuleSettings(name="sgd", settings={"learning_rate": 0.1, **settings})


def offer(
    name: str,
    device_id: str,
    *,
    mask: Mask | None = None,
    rule: RuleSettings | None = None,
    work: LocalWork | None = None,
    fresh: bool = False,
    extras: Mapping[str, Array] | None = None,
    **changes: Any,
) -> OfferedTask:
    """Make a task. `fresh` weights are in no client's cache yet; `extras` are further arrays that the plan brings."""
    bundle = conformance_bundle()
    mask, rule = full_mask(bundle.graph) if mask is None else mask, sgd() if rule is None else rule
    local_rule, is_personal = rule_of(rule), changes.get("round", _ROUND) >= changes.get("rounds", _ROUNDS)
    trained = local_rule.trains(mask)
    weights = gather(mask, _weights(name if fresh else ""))
    about = {"model": bundle.graph.digest, "mask": mask.digest}
    contents = {
        "model": bundle.files[GRAPH],
        "mask_body": encode_mask(mask),
        "graph": _graph(bundle, local_rule, trained),
        "weights": encode_weights(weights, about),
        "inference": bundle.files[INFER],
        "tensors": dumps(submodel_document(trained, {} if is_personal else local_rule.sends(mask))).encode(),
    }
    if extras:
        contents["extras"] = encode_weights(extras, about)
    fields: dict[str, Any] = {
        "task_id": name.replace("/", "."),
        "device_id": device_id,
        "round": _ROUND,
        "rounds": _ROUNDS,
        "mask": mask.digest,
        "rule": rule,
        "work": LocalWork(epochs=1, batch_size=32) if work is None else work,
        "deadline_seconds": 600.0,
        "seed": _SEED,
        **{name: digest_of(content) for name, content in contents.items()},
    }
    artifacts = {digest_of(content): content for content in contents.values()}
    return OfferedTask(ClientPlan(**(fields | changes)), mask, weights, artifacts, extras or {})


def _graph(bundle: Bundle, rule: LocalRule, trained: Mask) -> bytes:
    if only_forward(rule):
        return feature_graph(bundle.files[INFER], bundle.graph)
    return cut_training_graph(bundle.files[TRAIN], trained)


def right_result(task: OfferedTask) -> FinishedTask:
    """Return what a client must compute. Names in its report are not the task's own."""
    plan = replace(task.plan, **_NAMED_ONLY)
    key = repr(plan)
    if key not in _RESULTS:
        trainer = Trainer(_engine(), local_samples(), None, threads=1, device_id=plan.device_id)
        graph, inference = task.artifacts[str(plan.graph)], plan.inference
        given = TrainingTask(
            plan, task.mask, task.weights, graph, None if inference is None else task.artifacts[inference], task.extras
        )
        _RESULTS[key] = trainer.run(given)
    return _RESULTS[key]


_RESULTS: dict[str, FinishedTask] = {}


@cache
def _engine() -> Any:
    return open_engine("onnx", ThreadSettings(1))


@cache
def _weights(name: str) -> dict[str, Array]:
    """Return the model's weights, a little changed for every name but the empty one."""
    weights = bundle_weights(conformance_bundle())
    if not name:
        return weights
    return {tensor: _perturbed(name, tensor, array) for tensor, array in weights.items()}


def _perturbed(name: str, tensor: str, array: Array) -> Array:
    if array.dtype != np.float32 or tensor.endswith("running_var"):
        return array
    noise = symmetric(derive(1, name, tensor), 0, math.prod(array.shape), _PERTURBATION)
    return (array + noise.reshape(array.shape)).astype(np.float32)
