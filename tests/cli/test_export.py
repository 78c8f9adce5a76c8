"""`edgefl export` as a person meets it."""

import contextlib
import json
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from edgefl.artifacts.bundle import INFER, TRAIN, read_bundle
from edgefl.artifacts.submodel import bundle_weights, make_submodel
from edgefl.cli.export_federation import fetched
from edgefl.cli.main import main
from edgefl.errors import ExportError
from edgefl.masks import gather, leading_channels
from edgefl.values import Program, dumps, loads
from edgefl.wire import Dense, decode, decode_mask
from tests.values.samples import PROFILE


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["export", *words]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_a_bundle_and_a_personal_part_are_written_and_described(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = told(capsys, "--model", "cnn4", "--keep", "0.5", "--freeze", "block1", "--out", str(tmp_path / "out"))
    assert "gradients differ from PyTorch's by at most" in text
    assert "25.2%" in text
    bundle = read_bundle(tmp_path / "out")
    assert bundle.manifest.input_shape == (1, 28, 28)
    assert bundle.graph.parameters == 390_880
    folder = tmp_path / "out" / "personal"
    mask = decode_mask((folder / "mask.safetensors").read_bytes(), bundle.graph)
    assert not {"block1.conv", "block1.norm"} & mask.trained
    weights = decode((folder / "weights.safetensors").read_bytes())
    assert {name: payload.shape for name, payload in weights.tensors.items()} == dict(mask.shapes)
    names = {output.name for output in ort.InferenceSession(folder / TRAIN).get_outputs()}
    assert "grad:block1.conv.weight" not in names
    assert "grad:block2.conv.weight" in names
    (logits,) = ort.InferenceSession(folder / INFER).run(None, {"x": np.zeros((3, 1, 28, 28), np.float32)})
    assert logits.shape == (3, 10)


def test_json_tells_digests_and_costs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (
        json.loads(told(capsys, "--json", "--no-check", "--model", "mlp", "--out", str(tmp_path / name)))
        for name in ("a.zip", "b.zip")
    )
    assert first == second
    assert first["costs"]["dense"]["parameters"] == 1_103_366
    assert first["gradient_error"] is None
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_a_bundle_says_what_a_sample_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--no-check", "--model", "my_cnn:make", "--input", "1,8,8")
    (tmp_path / "my_cnn.py").write_text(
        "from torch import nn\ndef make():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))\n"
    )
    with contextlib.chdir(tmp_path):
        told(capsys, *words, "--out", "plain")
        told(capsys, *words, "--data", "digits", "--out", "described.zip")
        assert main(["export", *words, "--data", "fashion-mnist", "--out", "wrong"]) == 1
    plain, described = read_bundle(tmp_path / "plain").sample, read_bundle(tmp_path / "described.zip").sample
    assert (plain.shape, plain.classes, plain.raw_dtype) == ((1, 8, 8), 10, None)
    assert (described.raw_dtype, described.class_names) == ("uint8", tuple("0123456789"))
    assert described.normalisation is not None
    assert described.normalisation.scale == 16
    assert described.example is not None


def test_a_model_of_ones_own_is_exported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_models.py").write_text(
        "from torch import nn\ndef tiny():\n    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3))\n"
    )
    monkeypatch.chdir(tmp_path)
    text = told(capsys, "--model", "my_models:tiny", "--input", "6", "--keep", "0.25", "--out", "out")
    assert "tiny: sha256:" in text
    assert read_bundle(tmp_path / "out").graph.group["0"].width == 8


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "cnn5"], "no model 'cnn5' in the zoo"),
        (["--model", "a.b:c"], "--input 3,32,32"),
        (["--model", "nowhere_to_be_found:c", "--input", "3"], "nowhere_to_be_found"),
        (["--model", "json:loads", "--input", "x"], "not a valid shape"),
        (["--model", "mlp", "--input", "3"], "--input is for models of your own"),
        (["--model", "mlp", "--keep", "1.5"], "kept fraction is 1.5"),
        (["--model", "mlp", "--mask", "nowhere"], "nowhere cannot be read"),
        (["--model", "mlp", "--profile", "nowhere"], "nowhere cannot be read"),
        (["--model", "mlp", "--weights", "nowhere"], "nowhere cannot be read"),
        (["--model", "mlp", "--format", "tflite"], "unknown format 'tflite'"),
        (["--model", "mlp", "--batch", "0"], "batch size is 0"),
        (["--model", "mlp", "--int8"], "--data fashion-mnist"),
        (["--model", "mlp", "--int8", "--data", "digits"], "a sample of 'digits' has the shape (1, 8, 8)"),
        (["--model", "mlp", "--freeze", "attic"], "no trainable layer 'attic'"),
    ],
)
def test_what_cannot_be_exported_is_explained(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "--no-check", "--out", str(tmp_path / "out"), *words]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert not (tmp_path / "out").exists()


def test_a_submodel_infers_what_its_weights_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "--no-check", "--model", "mlp", "--out", str(tmp_path / "out"))
    bundle = read_bundle(tmp_path / "out")
    mask = leading_channels(bundle.graph, 0.5)
    submodel = make_submodel(bundle, mask)
    x = np.random.default_rng(0).standard_normal((4, 561)).astype(np.float32)
    (found,) = ort.InferenceSession(submodel.inference_model).run(None, {"x": x})
    part = gather(mask, bundle_weights(bundle))
    for layer in ("fc1.linear", "fc2.linear", "head"):
        x = x @ part[f"{layer}.weight"].T + part[f"{layer}.bias"]
        x = x if layer == "head" else np.maximum(x, 0)
    assert np.allclose(found, x, atol=1e-4)
    sent = decode(submodel.weights).tensors["head.weight"]
    assert isinstance(sent, Dense)
    assert np.array_equal(sent.array, part["head.weight"])


TINY = """
from torch import nn
def tiny():
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
"""


def test_every_format_of_a_part_is_written_and_the_price_of_eight_bits_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tiny_models.py").write_text(TINY)
    monkeypatch.chdir(tmp_path)
    words = ["--model", "tiny_models:tiny", "--input", "1,8,8", "--keep", "0.5", "--format", "onnx,executorch"]
    out = json.loads(told(capsys, *words, "--int8", "--data", "digits", "--batch", "4", "--out", "out", "--json"))
    inference = {"infer.onnx", "infer.pte", "infer.int8.onnx", "infer.int8.pte"}
    training = {"train.onnx", "train.pte", "train.json", "weights.safetensors"}
    assert set(out["personal_files"]) == {"mask.safetensors", *inference, *training}
    assert {path.name for path in (tmp_path / "out" / "personal").iterdir()} == set(out["personal_files"])
    assert set(out["int8"]) == {"onnx", "pte"}
    for found in out["int8"].values():
        assert found["samples"] > 100
        assert found["same"] > 0.9
        assert abs(found["after"] - found["before"]) < 0.1
    program = loads(Program, (tmp_path / "out" / "personal" / "train.json").read_bytes())
    assert program.spec.batch_size == 4
    assert program.inputs[:3] == ("x", "y", "sample_weights")


def test_only_what_inference_needs_is_written_if_only_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told(capsys, "--no-check", "--model", "mlp", "--infer", "--out", str(tmp_path / "out"))
    assert {path.name for path in (tmp_path / "out" / "personal").iterdir()} == {"mask.safetensors", "infer.onnx"}


def test_a_profile_decides_the_width(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "profile.json").write_text(dumps(PROFILE))
    words = ["--no-check", "--json", "--model", "cnn4", "--profile", str(tmp_path / "profile.json")]
    kept = []
    for seconds in ("10", "0.1", "0.05"):
        out = json.loads(told(capsys, *words, "--step-seconds", seconds, "--out", str(tmp_path / "out")))
        kept.append(out["costs"]["personal"]["parameters"])
    assert kept[0] == 390_880
    assert kept[0] > kept[1] > kept[2]
    assert main(["export", *words, "--step-seconds", "0.0001", "--out", str(tmp_path / "none")]) == 1
    assert "not even the narrowest submodel" in capsys.readouterr().err


def test_weights_of_an_earlier_export_are_taken_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--no-check", "--model", "mlp", "--json"]
    first = json.loads(told(capsys, *words, "--seed", "5", "--out", str(tmp_path / "first")))
    weights = str(tmp_path / "first" / "weights.safetensors")
    again = json.loads(told(capsys, *words, "--weights", weights, "--out", str(tmp_path / "again")))
    assert again["files"] == first["files"]
    assert main(["export", "--model", "lenet5", "--weights", weights, "--out", str(tmp_path / "other")]) == 1
    assert "which lenet5 does not have" in capsys.readouterr().err


def test_one_way_to_choose_a_part_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["export", "--model", "mlp", "--keep", "0.5", "--mask", "m", "--out", str(tmp_path)])
    assert stop.value.code == 2
    assert "not allowed with argument" in capsys.readouterr().err


class _Moving:
    """A coordinator's answers, of a model that changes after so many downloads of its files."""

    def __init__(self, changes: list[int]) -> None:
        self.fetched, self._changes = 0, changes

    def __call__(self, form: str) -> bytes:
        version = sum(self.fetched >= change for change in self._changes)
        self.fetched += 1
        return f"{form} {version}".encode()


@pytest.mark.parametrize("change", range(1, 5))
def test_files_out_of_a_federation_are_of_one_model_even_if_a_round_ends_meanwhile(change: int) -> None:
    files = fetched(_Moving([change]))
    version = {content.split()[1] for content in files.values()}
    assert version == ({b"1"} if change < 4 else {b"0"})
    assert {content.split()[0] for content in files.values()} == {b"onnx", b"weights", b"mask"}


def test_a_model_that_never_stands_still_is_given_up_with_a_word() -> None:
    moving = _Moving(list(range(1, 1000)))
    with pytest.raises(ExportError, match="changed during each of 5 downloads"):
        fetched(moving)
    assert moving.fetched <= 20
