"""tasks.json: whole tasks on a small graph with dropout, from the plan to the update. forward_tasks.json: tasks without
training, on what that graph is without its last layer.

An engine is involved, so numbers are compared with tolerances, and numbers that still hold are kept: another processor
must not write another file.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from device_runtime.engines import ThreadSettings, open_engine
from device_runtime.local_data import LocalData
from device_runtime.trainer import FinishedTask, Trainer, TrainingTask
from edgefl.artifacts.bundle import INFER, Bundle, read_bundle
from edgefl.artifacts.features import feature_graph
from edgefl.artifacts.submodel import bundle_weights, make_submodel
from edgefl.data import Dataset, Normalisation, Samples
from edgefl.federation.submodel_document import submodel_document
from edgefl.local_rules import LocalRule, only_forward, rule_of
from edgefl.masks import Mask, freeze, full_mask, gather
from edgefl.noise import bits, derive, symmetric
from edgefl.values import ClientPlan, LocalWork, RuleSettings, digest_of, dumps, to_json
from edgefl.wire import Bits, Body, BodyKind, Dense, Payload, decode, encode, encode_mask, encode_weights
from tests.golden.encoding import FOLDER, array_of, cases_text, from_base64, json_of, to_base64
from tests.golden.rule_files import RESULT

__all__ = ["BUNDLE", "TOLERANCE", "forward_tasks", "local_data", "run", "same_body", "tasks"]

BUNDLE = Path(__file__).parents[1] / "device_runtime" / "golden_model.zip"
"""The network, exported by `tests/export/test_golden_model.py`."""
TOLERANCE = {"loss": 1e-4, "values": 1e-4, "accuracy": 0.101, "bits": 0.02}
"""Largest differences: of losses and values in absolute terms, of accuracy (one sample), and the share of bits."""
_SUMS_TOLERANCE = 1e-4
"""The largest difference of sums, as a multiple of the largest of them."""
_NORMALISATION = {"mean": [0.35], "std": [0.25], "scale": 255.0}


def tasks() -> str:
    """Return the text of tasks.json."""
    return _text("tasks.json", _tasks(), TOLERANCE)


def forward_tasks() -> str:
    """Return the text of forward_tasks.json."""
    tolerance = {"loss": TOLERANCE["loss"], "accuracy": TOLERANCE["accuracy"], "sums": _SUMS_TOLERANCE}
    return _text("forward_tasks.json", _forward_tasks(), tolerance)


def _text(file: str, tasks: Mapping[str, dict[str, Any]], tolerance: Mapping[str, float]) -> str:
    artifacts: dict[str, str] = {}
    raw, labels = _samples()
    shared = {
        "data": {"raw": json_of(raw), "labels": labels.tolist(), "classes": 3, "normalisation": _NORMALISATION},
        "validation_share": 0.25,
        "tolerance": tolerance,
    }
    data = local_data(shared)
    cases = [_case(name, task, data, artifacts) for name, task in tasks.items()]
    anew = cases_text(cases, **shared, result=RESULT, artifacts=artifacts)
    return _kept(file, anew)


def _samples() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return 41 images of noise, brighter at the pixels of their class: a last batch has one sample of 31."""
    labels = np.arange(41) % 3
    raw = (bits(41, 0, 41 * 16) >> np.uint64(57)).astype(np.uint8).reshape(41, 1, 4, 4)
    bright = (np.arange(16) % 3).reshape(1, 1, 4, 4) == labels.reshape(-1, 1, 1, 1)
    return (raw + 100 * bright).astype(np.uint8), labels


def local_data(file: Mapping[str, Any]) -> LocalData:
    """Return the device's data of a file."""
    raw, labels = array_of(file["data"]["raw"]), np.array(file["data"]["labels"])
    how = file["data"]["normalisation"]
    normalisation = Normalisation(tuple(how["mean"]), tuple(how["std"]), how["scale"])
    whole = Dataset("golden", Samples(raw, labels), Samples(raw[:0], labels[:0]), 3, normalisation=normalisation)
    return LocalData.whole(whole, validation=file["validation_share"])


def _tasks() -> dict[str, dict[str, Any]]:
    graph = read_bundle(BUNDLE).graph
    (group,) = graph.groups
    narrow = Mask.of(graph, kept={group.name: [0, 2, 3]})
    two = LocalWork(epochs=2, batch_size=6)
    return {
        "sgd, whole model": {
            "mask": full_mask(graph),
            "rule": RuleSettings(name="sgd", settings={"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.001}),
            "work": two,
        },
        "sgd, three channels, head alone, clipped": {
            "mask": freeze(narrow, [graph.layer_of[name] for name in graph.tensor if not name.startswith("5.")]),
            "rule": RuleSettings(name="sgd", settings={"learning_rate": 0.1, "clip_norm": 0.5, "schedule": "cosine"}),
            "work": LocalWork(epochs=3, batch_size=6, most_steps=7),
            "round": 1,
        },
        "masked_noise, three channels": {
            "mask": narrow,
            "rule": RuleSettings(
                name="masked_noise", settings={"learning_rate": 0.3, "bound": 0.05, "masks": "signed"}
            ),
            "work": two,
        },
        "fine_tune, personal round": {
            "mask": narrow,
            "rule": RuleSettings(name="fine_tune", settings={"learning_rate": 0.05, "head": "head_only"}),
            "work": two,
            "round": 4,
        },
        "sgd, three channels, sensitivity": {
            "mask": narrow,
            "rule": RuleSettings(name="sgd", settings={"learning_rate": 0.05, "momentum": 0.9, "sensitivity": True}),
            "work": two,
            "round": 2,
        },
    }


def _forward_tasks() -> dict[str, dict[str, Any]]:
    graph = read_bundle(BUNDLE).graph
    (group,) = graph.groups
    whole, narrow = Mask.of(graph, trained=[]), Mask.of(graph, trained=[], kept={group.name: [0, 2]})
    fives, weight = LocalWork(epochs=1, batch_size=5), "5.weight"  # 31 samples: the last batch is one of them
    head = {
        weight: symmetric(derive(7, weight), 0, 3 * narrow.shapes[weight][1], 0.2).reshape(narrow.shapes[weight]),
        "5.bias": np.array([0.5, 0.0, -0.25], np.float32),
    }
    return {
        "feature_sums, whole model": {"mask": whole, "rule": RuleSettings(name="feature_sums"), "work": fives},
        "feature_sums, two channels, clipped": {
            "mask": narrow,
            "rule": RuleSettings(name="feature_sums", settings={"clip": 2.0}),
            "work": LocalWork(epochs=3, batch_size=40, most_steps=7),
        },
        "head_gradients, two channels": {
            "mask": narrow,
            "rule": RuleSettings(name="head_gradients", settings={}),
            "work": fives,
            "round": 1,
            "extras": head,
        },
        "class_prior, personal round": {
            "mask": whole,
            "rule": RuleSettings(name="class_prior"),
            "work": fives,
            "round": 4,
            "extras": {"shares": np.array([0.2, 0.3, 0.5], np.float32)},
        },
    }


def _case(name: str, task: dict[str, Any], data: LocalData, artifacts: dict[str, str]) -> dict[str, Any]:
    bundle, mask = read_bundle(BUNDLE), task["mask"]
    rule, round_ = rule_of(task["rule"]), task.get("round", 0)
    trained = rule.trains(mask)

    def keep(content: bytes) -> str:
        artifacts[digest_of(content)] = to_base64(content)
        return digest_of(content)

    plan = ClientPlan(
        task_id="task-7",
        device_id="phone-7",
        round=round_,
        rounds=4,
        model=keep(dumps(bundle.graph).encode()),
        mask=mask.digest,
        mask_body=keep(encode_mask(mask)),
        rule=task["rule"],
        work=task["work"],
        deadline_seconds=600,
        seed=2**63 + 7 * len(name),
        graph=keep(_graph(bundle, trained, rule)),
        inference=keep(bundle.files[INFER]),
        weights=keep(encode_weights(gather(mask, bundle_weights(bundle)), {})),
        extras=keep(encode_weights(task["extras"], {})) if "extras" in task else None,
        tensors=keep(dumps(submodel_document(trained, {} if round_ >= 4 else rule.sends(mask))).encode()),
    )
    losses, finished = run(plan, mask, {digest: from_base64(text) for digest, text in artifacts.items()}, data)
    about = {"result": RESULT, "model": plan.model, "mask": plan.mask}
    sent = decode(finished.body).tensors
    return {
        "name": name,
        "plan": to_json(plan),
        "losses": losses,
        "report": _report(finished),
        "body": to_base64(encode(Body(BodyKind.UPDATE, sent, seed=plan.seed, about=about))),
    }


def _graph(bundle: Bundle, trained: Mask, rule: LocalRule) -> bytes:
    if only_forward(rule):
        return feature_graph(bundle.files[INFER], bundle.graph)
    return make_submodel(bundle, trained).training_graph


def _report(finished: FinishedTask) -> dict[str, Any]:
    result = finished.result
    known = {name: value for name, value in result.metrics.items() if name not in ("step_drift", "frequency_share")}
    return {
        "samples": result.samples,
        "steps": result.steps,
        "loss": result.loss,
        "accuracy": result.accuracy,
        "metrics": known,
    }


def run(
    plan: ClientPlan, mask: Mask, artifacts: Mapping[str, bytes], data: LocalData
) -> tuple[list[float], FinishedTask]:
    """Train a task with everything that it names, and return the loss of every step and the outcome."""
    losses: list[float] = []
    weights = decode(artifacts[str(plan.weights)]).arrays
    trainer = Trainer(
        open_engine("onnx", ThreadSettings(1)),
        data,
        None,
        threads=1,
        device_id=plan.device_id,
        progress=lambda step, steps, loss: losses.append(loss),
    )
    graph, inference = artifacts[str(plan.graph)], artifacts[str(plan.inference)]
    extras = {} if plan.extras is None else decode(artifacts[plan.extras]).arrays
    return losses, trainer.run(TrainingTask(plan, mask, weights, graph, inference, extras))


def same_body(found: Mapping[str, Payload], expected: Mapping[str, Payload]) -> bool:
    """Return whether two updates hold the same tensors, within the tolerance."""
    return found.keys() == expected.keys() and all(_close(payload, expected[name]) for name, payload in found.items())


def _close(one: Payload, other: Payload) -> bool:
    if one.shape != other.shape:
        return False
    if isinstance(one, Bits) and isinstance(other, Bits):
        return bool(np.mean(one.to_bool() != other.to_bool()) <= TOLERANCE["bits"])
    if isinstance(one, Dense) and isinstance(other, Dense) and other.array.dtype == np.float64:
        return bool(np.allclose(one.array, other.array, rtol=0, atol=_SUMS_TOLERANCE * np.abs(other.array).max()))
    if isinstance(one, Dense) and isinstance(other, Dense):
        return bool(np.allclose(one.array, other.array, rtol=0, atol=TOLERANCE["values"]))
    return False


def _kept(file: str, anew: str) -> str:
    """Return the text of the file that is there if it says the same within the tolerance, else the new one."""
    path = FOLDER / file
    if not path.exists():
        return anew
    text = path.read_text(encoding="utf-8")
    old, new = json.loads(text), json.loads(anew)
    pairs = list(zip(old.pop("cases"), new.pop("cases"), strict=False))
    same = old == new and all(_agree(one, other) for one, other in pairs) and text.count('"plan"') == len(pairs)
    return text if same and anew.count('"plan"') == len(pairs) else anew


def _agree(one: Any, other: Any) -> bool:
    bodies = [decode(from_base64(case["body"])).tensors for case in (one, other)]
    exact = all(one[key] == other[key] for key in ("name", "plan")) and len(one["losses"]) == len(other["losses"])
    return exact and same_body(*bodies) and bool(np.allclose(one["losses"], other["losses"], atol=TOLERANCE["loss"]))
