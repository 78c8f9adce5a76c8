"""`edgefl bench`: its tables, its JSON, its pictures, and what it says to bad input."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edgefl.artifacts.submodel import make_submodel
from edgefl.cli.main import main
from edgefl.masks import full_mask, leading_channels
from tests.device_runtime.federation import BUNDLE, bundle

Capture = pytest.CaptureFixture[str]
QUICK = ("--turns", "3", "--warm-up", "1", "--threads", "1", "--energy-seconds", "0.01")


@pytest.fixture
def no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a Raspberry Pi."""
    for package in ("torch", "executorch"):
        monkeypatch.setitem(sys.modules, package, None)


def told(capsys: Capture, *words: str) -> Any:
    assert main(["bench", *words, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def test_infer_measures_a_bundle_without_torch_and_names_what_is_missing(no_torch: None, capsys: Capture) -> None:
    words = ("--bundle", str(BUNDLE), "--keep", "0.5", "--form", "dense,sparse", "--data", "digits")
    found = told(capsys, "infer", *words, *QUICK)
    assert found["bench"] == "infer"
    assert found["machine"]["cores"] >= 1
    dense, sparse = found["rows"]
    assert (dense["form"], sparse["form"]) == ("dense", "sparse")
    assert dense["speed_up"]["verdict"] == "baseline"
    assert sparse["speed_up"]["against"] == dense["name"]
    assert sparse["kept"] <= 0.5
    for row in found["rows"]:
        assert row["seconds"]["turns"] == 3
        assert row["memory"]["provenance"] in ("measured", "estimated")
        assert row["energy"]["provenance"] in ("measured", "estimated")
        assert row["energy"]["joules_each"] >= 0
        assert row["accuracy"]["samples"] > 100
    assert [one["name"] for one in found["missing"]] == ["dense, ExecuTorch", "sparse, ExecuTorch"]
    assert all("torch" in one["reason"] for one in found["missing"])


BLOCKER = """
import sys
for package in ("torch", "executorch", "onnx", "scipy", "fastapi", "httpx", "matplotlib"):
    sys.modules[package] = None
"""


def test_a_device_with_onnxruntime_and_nothing_else_measures_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(BLOCKER)
    words = ["infer", "--bundle", str(BUNDLE), "--form", "dense,sparse,sparse int8", "--engine", "onnx", *QUICK]
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    done = subprocess.run(
        [sys.executable, "-m", "edgefl", "bench", *words, "--json"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["form"] for row in found["rows"]] == ["dense", "sparse"]
    assert found["missing"][0]["name"] == "sparse int8, onnxruntime"
    assert any("weights are inputs" in note for note in found["notes"])


def test_infer_races_files_in_a_table_and_a_picture(tmp_path: Path, capsys: Capture) -> None:
    files = []
    for name, mask in (("whole", full_mask(bundle().graph)), ("half", leading_channels(bundle().graph, 0.5))):
        file = tmp_path / f"{name}.onnx"
        file.write_bytes(make_submodel(bundle(), mask).inference_model)
        files += ["--file", str(file)]
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a model")
    picture = tmp_path / "speed.svg"
    assert main(["bench", "infer", *files, "--file", str(broken), *QUICK, "--plot", str(picture)]) == 0
    title, _, head, *lines = capsys.readouterr().out.splitlines()
    assert title == "whole.onnx, half.onnx, broken.onnx: one sample, 1 threads, 3 turns"
    assert head.split()[:6] == ["model", "file", "p50", "p90", "max", "min"]
    assert lines[0].startswith("whole.onnx")
    assert lines[1].startswith("half.onnx")
    assert any(line.startswith("  broken.onnx: the graph is not a readable ONNX model") for line in lines)
    assert "accuracy: no data given" in lines
    assert any(line.startswith("energy: ") for line in lines)
    assert picture.read_bytes().startswith(b"<?xml")


def test_train_runs_the_onnx_engine_without_torch_and_names_the_others(no_torch: None, capsys: Capture) -> None:
    words = ("--bundle", str(BUNDLE), "--batch", "4", "--part", "full,half")
    found = told(capsys, "train", *words, *QUICK)
    assert [row["name"] for row in found["rows"]] == ["onnxruntime, batch 4", "onnxruntime, half width, batch 4"]
    whole, half = found["rows"]
    assert whole["time"] is None
    assert half["of_whole"]["against"] == whole["name"]
    assert whole["loss"] > 0
    missing = {one["name"]: one["reason"] for one in found["missing"]}
    assert set(missing) == {
        "PyTorch, batch 4",
        "ExecuTorch, batch 4",
        "ExecuTorch, half width, batch 4",
    }
    assert "'torch', which is not installed" in missing["PyTorch, batch 4"]
    assert "which is not installed" in missing["ExecuTorch, batch 4"]


def test_train_finds_the_loss_of_pytorch(capsys: Capture) -> None:
    words = ("mlp", "--engine", "pytorch,onnx", "--batch", "2")
    pytorch, onnx = told(capsys, "train", *words, *QUICK)["rows"]
    assert pytorch["time"]["verdict"] == "baseline"
    assert onnx["time"]["against"] == pytorch["name"]
    assert onnx["loss"] == pytest.approx(pytorch["loss"], rel=1e-4)


def test_wire_prints_a_row_for_every_body(capsys: Capture) -> None:
    assert main(["bench", "wire", "--bundle", str(BUNDLE), "--turns", "2"]) == 0
    title, _, head, *lines = capsys.readouterr().out.splitlines()
    assert title.startswith("small_cnn: ")
    assert head.split()[:4] == ["body", "parameters", "bytes", "header"]
    assert lines[0].startswith("dense, float32")
    assert any(line.startswith("fedavg, sends masked_noise") for line in lines)


def test_plan_tells_bias_bound_and_gap(capsys: Capture, tmp_path: Path) -> None:
    picture = tmp_path / "plan.png"
    words = ("plan", "--bundle", str(BUNDLE), "--devices", "4", "--method", "auto,random", "--plot", str(picture))
    rows = told(capsys, *words)["rows"]
    assert [row["method"] for row in rows] == ["auto", "random"]
    assert all({"seconds", "bias", "lower_bound", "gap", "unused"} <= set(row) for row in rows)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_coordinator_serves_its_devices_and_is_stopped(capsys: Capture) -> None:
    found = told(capsys, "coordinator", "--devices", "3", "--rounds", "1", "--start", "0.05")
    rows = {row["name"]: row for row in found["rows"]}
    assert rows["accepted updates a second"]["updates"] == 3
    assert rows["upload"]["seconds"]["turns"] == 3
    assert found["setting"]["update_bytes"] > 4 * 12_810
    assert "no request failed" in found["notes"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["infer", "nonsense"], "there is no model 'nonsense'"),
        (["infer", "--bundle", str(BUNDLE), "--keep", "1.5"], "--keep is 1.5"),
        (["infer", "--file", "absent.onnx"], "absent.onnx does not exist"),
        (["infer", "--file", "model.tflite"], "not a supported model file"),
        (["infer", "--file", "a.onnx", "--bundle", str(BUNDLE)], "both --file and a model"),
        (["infer", "--bundle", str(BUNDLE), "--engine", "tflite"], "unknown engine 'tflite'"),
        (["infer", "--bundle", str(BUNDLE), "--turns", "0"], "--turns is 0"),
        (["infer", "--bundle", "absent"], "absent has no manifest.json"),
        (["train", "--bundle", str(BUNDLE), "--batch", "many"], "--batch is 'many'"),
        (["train", "--bundle", str(BUNDLE), "--plot", "speed.txt"], "speed.txt"),
        (["plan", "--devices", "0"], "the fleet sizes are [0]"),
        (["coordinator", "--devices", "0"], "--devices is 0"),
    ],
)
def test_bad_input_is_explained_without_a_traceback(words: list[str], said: str, capsys: Capture) -> None:
    assert main(["bench", *words]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "Traceback" not in err


@pytest.mark.parametrize("words", [[], ["fly"], ["infer", "--turns", "many"], ["coordinator", "--devices", "1.5"]])
def test_wrong_usage_exits_with_two(words: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["bench", *words])
    assert stopped.value.code == 2
    assert "usage: edgefl bench" in capsys.readouterr().err
