"""Which model is measured, and what can be made of it where packages are missing."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from device_runtime.profiler.cases import Sample
from edgefl.artifacts.bundle import TRAIN
from edgefl.artifacts.submodel import make_submodel
from edgefl.bench.benchmark_model import BenchmarkModel, open_benchmark_model
from edgefl.bench.infer import InferRequest
from edgefl.bench.inference_files import FORMS, InferenceFiles, make_inference_files, sparse_mask
from edgefl.bench.load.model import perceptron_bundle
from edgefl.bench.measurements import MeasuringTime
from edgefl.bench.plan import fleet_of, mobilenet_blocks, plan_report
from edgefl.bench.train import TrainRequest
from edgefl.errors import EdgeFLError
from edgefl.masks import full_mask, leading_channels
from edgefl.wire import encode_mask
from tests.device_runtime.federation import BUNDLE


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a Raspberry Pi."""
    for package in ("torch", "executorch"):
        monkeypatch.setitem(sys.modules, package, None)


@pytest.fixture
def subject(no_torch: None) -> BenchmarkModel:
    return open_benchmark_model(None, str(BUNDLE))


def parts_of(
    subject: BenchmarkModel, folder: Path, engines: tuple[str, ...] = ("onnx", "executorch")
) -> InferenceFiles:
    mask, exported = sparse_mask(subject, 0.4, 8)
    manifest = subject.bundle.manifest
    samples = Sample(tuple(manifest.input_shape), manifest.input_dtype.value, manifest.outputs).batch(4).x
    return make_inference_files(
        subject,
        mask,
        exported,
        engines=engines,
        forms=FORMS,
        samples=samples,
        folder=folder,
        progress=lambda step: None,
    )


def test_without_torch_onnx_files_are_made_and_programs_are_named_as_missing(
    subject: BenchmarkModel, tmp_path: Path
) -> None:
    parts = parts_of(subject, tmp_path)
    assert [part.name for part in parts.made] == [f"{form}, onnxruntime" for form in FORMS]
    assert set(parts.missing) == {f"{form}, ExecuTorch" for form in FORMS}
    assert all("'torch', which is not installed" in reason for reason in parts.missing.values())
    dense, sparse, *_ = parts.made
    assert dense.kept == 1.0
    assert sparse.kept is not None
    assert sparse.kept <= 0.4
    assert sparse.file_bytes < dense.file_bytes


def test_without_onnx_weights_are_inputs_and_a_note_says_so(
    subject: BenchmarkModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    parts = parts_of(subject, tmp_path, ("onnx",))
    assert [part.form for part in parts.made] == ["dense", "sparse"]
    assert all(part.weights is not None for part in parts.made)
    assert set(parts.missing) == {"dense int8, onnxruntime", "sparse int8, onnxruntime"}
    assert any("slower" in note for note in parts.notes)


def test_the_personal_part_of_a_bundle_is_taken_where_nothing_else_is_asked_for(
    subject: BenchmarkModel, tmp_path: Path
) -> None:
    half = leading_channels(subject.bundle.graph, 0.5)
    (tmp_path / "mask.safetensors").write_bytes(encode_mask(half))
    personal = replace(subject, personal=tmp_path)
    found, folder = sparse_mask(personal, None, 16)
    assert (found.digest, folder) == (half.digest, tmp_path)
    assert sparse_mask(personal, 0.3, 16)[1] is None


@pytest.mark.parametrize("keep", [0.0, -1.0, 1.5])
def test_a_share_that_cannot_be_kept_is_refused(subject: BenchmarkModel, keep: float) -> None:
    with pytest.raises(EdgeFLError, match="--keep is"):
        sparse_mask(subject, keep, 16)


def test_without_torch_a_built_in_model_can_be_trained_and_others_need_a_bundle(no_torch: None) -> None:
    built_in = open_benchmark_model("mlp", None)
    assert built_in.source is None
    assert "'torch'" in built_in.no_source
    assert TRAIN in built_in.bundle.files
    assert set(built_in.weights) == {tensor.name for tensor in built_in.bundle.graph.tensors}
    with pytest.raises(EdgeFLError, match=r"'torch', which is not installed.*--bundle"):
        open_benchmark_model("vgg16", None)


@pytest.mark.parametrize(("model", "bundle"), [(None, None), ("cnn4", str(BUNDLE))])
def test_a_model_is_named_once(model: str | None, bundle: str | None) -> None:
    with pytest.raises(EdgeFLError, match="no model, or more than one"):
        open_benchmark_model(model, bundle)


def test_orders_refuse_what_does_not_exist() -> None:
    pace = MeasuringTime(turns=2)
    with pytest.raises(EdgeFLError, match="unknown engine 'tflite'"):
        InferRequest(pace, engines=("tflite",))
    with pytest.raises(EdgeFLError, match="unknown form 'sparser'"):
        InferRequest(pace, forms=("sparser",))
    with pytest.raises(EdgeFLError, match="unknown part 'tail'"):
        TrainRequest(pace, parts=("tail",))
    with pytest.raises(EdgeFLError, match="batch sizes"):
        TrainRequest(pace, batches=(0,))


def test_the_model_under_load_is_a_bundle_like_any_other() -> None:
    bundle = perceptron_bundle()
    assert bundle.graph.parameters == 64 * 128 + 128 + 128 * 32 + 32 + 32 * 10 + 10
    assert make_submodel(bundle, full_mask(bundle.graph)).training_graph


def test_planners_are_compared_and_what_would_take_too_long_is_named() -> None:
    report = plan_report(mobilenet_blocks(), "MobileNet", [3, 201], methods=["sequential", "sca"])
    assert [row["name"] for row in report.rows] == [
        "3 devices, sequential",
        "3 devices, sca",
        "201 devices, sequential",
    ]
    assert list(report.missing) == ["201 devices, sca"]
    assert report.setting["parameters"] == 3_206_976
    for row in report.rows:
        assert row["lower_bound"] <= row["bias"] * (1 + 1e-9)
        assert 0 <= row["gap"] <= 1
    assert len(fleet_of([1, 2])) == 2
    with pytest.raises(EdgeFLError, match="unknown method 'guess'"):
        plan_report(mobilenet_blocks(), "MobileNet", [3], methods=["guess"])
    with pytest.raises(EdgeFLError, match="0"):
        plan_report(mobilenet_blocks(), "MobileNet", [0])
