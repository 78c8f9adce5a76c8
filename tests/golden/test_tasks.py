"""This EdgeFL does the tasks of the golden files, from what a device downloads to what it sends."""

import json
from typing import Any

import numpy as np
import pytest

from edgefl.model_graph import ModelGraph
from edgefl.noise import derive, unit
from edgefl.values import ClientPlan, Submodel, digest_of, from_json, loads
from edgefl.wire import decode, decode_mask
from tests.golden.encoding import FOLDER, from_base64
from tests.golden.task_files import TOLERANCE, local_data, run, same_body

FILE, FORWARD = (
    json.loads((FOLDER / name).read_text(encoding="utf-8")) for name in ("tasks.json", "forward_tasks.json")
)
ARTIFACTS = {digest: from_base64(text) for file in (FILE, FORWARD) for digest, text in file["artifacts"].items()}


@pytest.mark.parametrize("case", [*FILE["cases"], *FORWARD["cases"]], ids=lambda case: case["name"])
def test_a_task_gives_these_losses_and_this_update(case: dict[str, Any]) -> None:
    plan = from_json(ClientPlan, case["plan"])
    mask = decode_mask(ARTIFACTS[str(plan.mask_body)], loads(ModelGraph, ARTIFACTS[plan.model]))
    losses, finished = run(plan, mask, ARTIFACTS, local_data(FILE))
    assert losses == pytest.approx(case["losses"], abs=TOLERANCE["loss"], rel=0)
    expected, result = decode(from_base64(case["body"])), finished.result
    assert same_body(decode(finished.body).tensors, expected.tensors)
    report = case["report"]
    assert (result.samples, result.steps) == (report["samples"], report["steps"])
    assert result.loss == pytest.approx(report["loss"], abs=TOLERANCE["loss"], rel=0)
    if report["accuracy"] is None:
        assert result.accuracy is None
    else:
        assert result.accuracy == pytest.approx(report["accuracy"], abs=TOLERANCE["accuracy"])
    assert set(report["metrics"]) <= set(result.metrics)
    document = loads(Submodel, ARTIFACTS[str(plan.tensors)])
    sent = {tensor.name: tensor.sent for tensor in document.tensors if tensor.sent is not None}
    sent |= {payload.name: payload.codec for payload in document.payloads}
    assert {name: payload.codec for name, payload in expected.tensors.items()} == sent


def test_forward_tasks_are_on_the_same_samples() -> None:
    assert FORWARD["data"] == FILE["data"]
    assert FORWARD["validation_share"] == FILE["validation_share"]


def test_a_forward_task_has_every_sample() -> None:
    """31 samples in batches of 5, the last of one; the label of a sample is its number modulo 3."""
    case = FORWARD["cases"][0]
    counts = decode(from_base64(case["body"])).arrays["sums/squares"]
    labels = local_data(FILE).split.train % 3
    assert counts.tolist() == np.bincount(labels, minlength=3).tolist()
    assert (case["report"]["steps"], len(case["losses"])) == (7, 7)
    assert case["report"]["accuracy"] is None


def test_artifacts_are_named_by_their_content() -> None:
    assert all(digest_of(content) == digest for digest, content in ARTIFACTS.items())


def test_the_tolerance_would_notice_another_seed_batch_or_rate() -> None:
    case = FILE["cases"][0]
    plan = from_json(ClientPlan, case["plan"] | {"seed": "5"})
    mask = decode_mask(ARTIFACTS[str(plan.mask_body)], loads(ModelGraph, ARTIFACTS[plan.model]))
    losses, finished = run(plan, mask, ARTIFACTS, local_data(FILE))
    assert losses != pytest.approx(case["losses"], abs=TOLERANCE["loss"], rel=0)
    assert not same_body(decode(finished.body).tensors, decode(from_base64(case["body"])).tensors)


def test_the_first_loss_by_hand() -> None:
    plan = from_json(ClientPlan, FILE["cases"][0]["plan"])
    weights = {name: array.astype(np.float64) for name, array in decode(ARTIFACTS[str(plan.weights)]).arrays.items()}
    batch = next(iter(local_data(FILE).epoch(plan.seed, 0, 6)))
    assert batch.seed == derive(plan.seed, "network", 0, 0)
    padded = np.pad(batch.x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded[:, 0], (3, 3), axis=(1, 2))
    maps = np.einsum("byxij,cij->bcyx", windows, weights["0.weight"][:, 0])
    mean, var = (f(maps, axis=(0, 2, 3), keepdims=True) for f in (np.mean, np.var))
    scale, shift = (weights[name].reshape(1, -1, 1, 1) for name in ("1.weight", "1.bias"))
    hidden = np.maximum((maps - mean) / np.sqrt(var + 1e-5) * scale + shift, 0)
    kept = unit(derive(batch.seed, 0), 0, hidden.size).reshape(hidden.shape) >= 0.25
    outputs = (hidden * kept / 0.75).reshape(6, -1) @ weights["5.weight"].T + weights["5.bias"]
    likelihood = outputs - np.log(np.exp(outputs).sum(axis=1, keepdims=True))
    loss = -likelihood[np.arange(6), batch.y].mean()
    assert loss == pytest.approx(FILE["cases"][0]["losses"][0], abs=1e-5)
