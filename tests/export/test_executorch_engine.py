"""The ExecuTorch engine of a device: the same training as onnxruntime's, on programs that come with a description."""

import threading
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from device_runtime.engines import ThreadSettings, installed_engines, open_engine
from device_runtime.refusal import RefusalError
from device_runtime.trainer import FinishedTask, StoppedError, Trainer, TrainingTask
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import EdgeFLError, ExportError, MaskError
from edgefl.local_rules import Batch
from edgefl.masks import Mask, freeze, gather, leading_channels
from edgefl.planning.rungs import covering_cut
from edgefl.values import LocalWork, Program, Reason, RuleSettings
from export.executorch import inference_program, training_program
from export.zoo.seeding import seeded
from tests.device_runtime.federation import bundle, local_data, task_of
from tests.device_runtime.programs import training_document
from tests.export.test_small_cnn import small_cnn

BATCH = 40
ONE = ThreadSettings(1)
RULES = {
    "sgd": {"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 1e-4},
    "ditto": {"learning_rate": 0.05},
    "masked_noise": {"learning_rate": 0.05},
}


def model() -> torch.nn.Module:
    with seeded(0):
        return small_cnn()


@cache
def mask() -> Mask:
    """Half of the channels, with a frozen layer in the middle, which programs train all the same."""
    graph = bundle().graph
    return freeze(leading_channels(graph, 0.5), [graph.trainable_layers[1]])


@cache
def program() -> tuple[bytes, Program]:
    cut = Mask.of(mask().graph, trained=covering_cut(mask().graph, mask().trained), kept=mask().kept)
    made = training_program(model(), torch.zeros(BATCH, 1, 8, 8), cut)
    return made.pte, training_document(mask(), made.pte, batch_size=BATCH, inputs=made.inputs, outputs=made.outputs)


def task(engine: str, rule: str = "sgd", **work: Any) -> TrainingTask:
    chosen = LocalWork(**({"epochs": 2, "batch_size": 32} | work))
    planned = task_of(mask(), work=chosen, rule=RuleSettings(name=rule, settings=RULES[rule]))
    if engine == "onnx":
        return planned
    pte, document = program()
    return replace(planned, graph=pte, program=document)


def trainer(engine: str, folder: Path, samples: int = 400, **options: Any) -> Trainer:
    return Trainer(open_engine(engine, ONE), local_data(samples), folder, threads=1, device_id="pi-1", **options)


def check_close(found: FinishedTask, expected: FinishedTask, tolerance: float) -> None:
    assert found.result.steps == expected.result.steps
    assert found.result.loss == pytest.approx(expected.result.loss, rel=tolerance)
    for name, array in expected.weights.items():
        np.testing.assert_allclose(
            found.weights[name], array, rtol=tolerance, atol=tolerance * np.abs(array).max(), err_msg=name
        )


@pytest.mark.parametrize("samples", [400, 20])
def test_both_engines_train_the_same_model(samples: int, tmp_path: Path) -> None:
    """A last batch of 8 of 360 samples, batches of 32 in a program for 40, and 18 samples, fewer than a batch."""
    assert installed_engines() == ("onnx", "executorch")
    ours = trainer("executorch", tmp_path / "a", samples).run(task("executorch"))
    theirs = trainer("onnx", tmp_path / "b", samples).run(task("onnx"))
    assert ours.result.steps == (24 if samples == 400 else 2)
    check_close(ours, theirs, 1e-4)
    assert ours.result.accuracy == theirs.result.accuracy is not None


def test_a_smaller_batch_gives_the_gradients_of_its_own_samples_alone() -> None:
    pte, document = program()
    step = open_engine("executorch", ONE).train_step(pte, mask(), program=document)
    other = open_engine("onnx", ONE).train_step(task("onnx").graph, mask())
    assert step.batch_size == BATCH
    weights, generator = gather(mask(), bundle_weights(bundle())), np.random.default_rng(0)
    for real in (BATCH, 7, 2):
        batch = Batch(generator.standard_normal((real, 1, 8, 8), np.float32), generator.integers(0, 10, real))
        found, expected = step(weights, batch), other(weights, batch)
        assert found.loss == pytest.approx(expected.loss, rel=1e-5)
        np.testing.assert_array_equal(found.correct, expected.correct)
        assert found.gradients.keys() == expected.gradients.keys()
        assert found.statistics.keys() == expected.statistics.keys()
        for name, gradient in {**expected.gradients, **expected.statistics}.items():
            ours = {**found.gradients, **found.statistics}[name]
            np.testing.assert_allclose(ours, gradient, rtol=1e-4, atol=1e-5 * max(1, np.abs(gradient).max()))


@pytest.mark.parametrize(("first", "second"), [("onnx", "executorch"), ("executorch", "onnx")])
@pytest.mark.parametrize("rule", RULES)
def test_a_task_that_one_engine_began_is_finished_by_the_other(
    rule: str, first: str, second: str, tmp_path: Path
) -> None:
    stop, steps = threading.Event(), list[int]()

    def until_half(done: int, total: int, loss: float) -> None:
        steps.append(done)
        if done == total // 2 + 2:  # within an epoch
            stop.set()

    with pytest.raises(StoppedError):
        trainer(first, tmp_path / "rough", progress=until_half).run(task(first, rule), stop)
    note = lambda done, total, loss: steps.append(done)  # noqa: E731
    found = trainer(second, tmp_path / "rough", progress=note).run(task(second, rule))
    assert steps == list(range(1, 25))  # no step was taken twice
    expected = trainer(first, tmp_path / "calm").run(task(first, rule))
    # A stochastic mask flips where two engines differ in the last bit of what it is drawn from.
    check_close(found, expected, 1e-5 if rule != "masked_noise" else 5e-2)
    times = found.result.telemetry.latency
    assert times.steps_measured == expected.result.telemetry.latency.steps_measured


def test_a_larger_batch_than_the_program_takes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusalError, match="at most 40, but the plan asks for 64") as caught:
        trainer("executorch", tmp_path).run(task("executorch", batch_size=64))
    assert caught.value.reason is Reason.UNSUPPORTED
    pte, document = program()
    step = open_engine("executorch", ONE).train_step(pte, mask(), program=document)
    with pytest.raises(ExportError, match="a batch has 41 samples, but the program takes at most 40"):
        step(gather(mask(), bundle_weights(bundle())), Batch(np.zeros((41, 1, 8, 8), np.float32), np.zeros(41, int)))


def test_weights_of_another_width_are_refused() -> None:
    pte, document = program()
    step = open_engine("executorch", ONE).train_step(pte, mask(), program=document)
    with pytest.raises(MaskError, match="was compiled for"):
        step(bundle_weights(bundle()), Batch(np.zeros((BATCH, 1, 8, 8), np.float32), np.zeros(BATCH, np.int64)))


def test_a_program_without_a_description_is_refused() -> None:
    with pytest.raises(ExportError, match="needs its description"):
        open_engine("executorch", ONE).train_step(program()[0], mask())


def test_a_description_that_lies_about_its_file_is_refused() -> None:
    pte, document = program()
    spec, engine = document.spec, open_engine("executorch", ONE)
    swapped = ("y", "x", *document.inputs[2:])
    gradients = [name for name in document.outputs if name.startswith("grad:")]
    turned = {gradients[0]: gradients[-1], gradients[-1]: gradients[0]}
    lies = {
        r"\(40,\), and not float32 \(41,\)": replace(document, spec=replace(spec, batch_size=41)),
        "bytes, and not 5": replace(document, size=5),
        "inputs, and not": replace(document, inputs=(*document.inputs, "seed")),
        "outputs, and not": replace(document, outputs=tuple(name for name in document.outputs if name != "correct")),
        "its output 'grad:": replace(document, outputs=tuple(turned.get(name, name) for name in document.outputs)),
        "is not what its description says": replace(document, inputs=swapped),
        "ExecuTorch 99.0": replace(document, made_with="executorch 99.0"),
    }
    for problem, lie in lies.items():
        with pytest.raises(ExportError, match=problem):
            engine.train_step(pte, mask(), program=lie)


def test_predictions_are_those_of_the_onnx_engine() -> None:
    weights = bundle_weights(bundle())
    pte = inference_program(model(), torch.zeros(1, 1, 8, 8), mask(), weights).pte
    x = np.random.default_rng(0).standard_normal((5, 1, 8, 8)).astype(np.float32)
    found = open_engine("executorch", ONE).predictor(pte)({}, x)
    onnx = open_engine("onnx", ONE).predictor(bundle().files["infer.onnx"])
    expected = onnx(gather(mask(), weights), x)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(EdgeFLError, match="no engine 'abacus'"):
        open_engine("abacus")
