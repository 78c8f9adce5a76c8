"""The ExecuTorch engine of a device: the same training as onnxruntime's, on a program that was compiled for a mask."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from device_runtime.engines import ThreadSettings, installed_engines, open_engine
from device_runtime.refusal import RefusalError
from device_runtime.trainer import FinishedTask, Trainer, TrainingTask
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import EdgeFLError, ExportError, MaskError
from edgefl.local_rules import Batch
from edgefl.masks import Mask, freeze, gather, leading_channels
from edgefl.values import LocalWork, Reason
from export.executorch import inference_program, training_program
from export.zoo.seeding import seeded
from tests.device_runtime.federation import bundle, local_data, task_of
from tests.export.test_small_cnn import small_cnn

BATCH = 40


def model() -> torch.nn.Module:
    with seeded(0):
        return small_cnn()


@cache
def mask() -> Mask:
    graph = bundle().graph
    return freeze(leading_channels(graph, 0.5), [graph.trainable_layers[0]])


@cache
def program() -> bytes:
    return training_program(model(), torch.zeros(BATCH, 1, 8, 8), mask()).pte


def trained(engine: str, graph: bytes | None, folder: Path, **work: Any) -> FinishedTask:
    task = task_of(mask(), work=LocalWork(**({"epochs": 3, "batch_size": BATCH} | work)))
    task = TrainingTask(task.plan, task.mask, task.weights, task.graph if graph is None else graph)
    data = local_data(400)  # 360 of them to train with: nine whole batches
    return Trainer(open_engine(engine, ThreadSettings(1)), data, folder, threads=1, device_id="pi-1").run(task)


def test_both_engines_train_the_same_model(tmp_path: Path) -> None:
    assert installed_engines() == ("onnx", "executorch")
    ours, theirs = trained("executorch", program(), tmp_path / "a"), trained("onnx", None, tmp_path / "b")
    assert ours.result.steps == theirs.result.steps == 27
    assert ours.result.loss == pytest.approx(theirs.result.loss, rel=1e-3)
    for name, expected in theirs.weights.items():
        np.testing.assert_allclose(ours.weights[name], expected, rtol=1e-3, atol=2e-3 * np.abs(expected).max())


def test_a_batch_of_another_size_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusalError, match="takes batches of 40, but the plan asks for 32") as caught:
        trained("executorch", program(), tmp_path, batch_size=32)
    assert caught.value.reason is Reason.UNSUPPORTED


def test_weights_of_another_width_are_refused() -> None:
    step = open_engine("executorch", ThreadSettings(1)).train_step(program(), mask())
    whole = bundle_weights(bundle())
    with pytest.raises(MaskError, match="was compiled for"):
        step(whole, Batch(np.zeros((BATCH, 1, 8, 8), np.float32), np.zeros(BATCH, np.int64)))


def test_bytes_that_are_no_program_are_refused() -> None:
    with pytest.raises(ExportError, match="cannot load the program"):
        open_engine("executorch", ThreadSettings(1)).train_step(b"no program at all" * 10, mask())


def test_predictions_are_those_of_the_onnx_engine() -> None:
    weights = bundle_weights(bundle())
    pte = inference_program(model(), torch.zeros(1, 1, 8, 8), mask(), weights).pte
    x = np.random.default_rng(0).standard_normal((5, 1, 8, 8)).astype(np.float32)
    found = open_engine("executorch", ThreadSettings(1)).predictor(pte)({}, x)
    onnx = open_engine("onnx", ThreadSettings(1)).predictor(bundle().files["infer.onnx"])
    expected = onnx(gather(mask(), weights), x)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(EdgeFLError, match="no engine 'abacus'"):
        open_engine("abacus")
