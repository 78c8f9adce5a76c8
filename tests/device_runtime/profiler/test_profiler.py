"""The whole profile of this machine, with real engines."""

import importlib.util
from pathlib import Path

import pytest

from device_runtime.engines import ThreadSettings, installed_engines
from device_runtime.engines.program_check import check_training_program
from device_runtime.profiler import ProfileRequest, measure
from device_runtime.profiler.executorch_cases import program_cases
from device_runtime.profiler.memory_probe import read_case, write_case
from device_runtime.profiler.reference_models import MODELS
from device_runtime.telemetry import usable_cores
from edgefl.artifacts.bundle import write_bundle
from edgefl.cli.main import main
from edgefl.errors import EdgeFLError, MissingDependencyError
from edgefl.masks import leading_channels
from edgefl.planning import predict
from edgefl.values import DeviceProfile, dumps, loads
from tests.device_runtime.federation import BUNDLE, bundle


def test_a_device_is_measured_with_its_own_model(tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    order = ProfileRequest(engine="onnx", threads=1, bundles=[BUNDLE], seconds=4, folder=tmp_path / "to come")
    profile = measure(order, lambda what, share: told.append((what, share)))
    assert loads(DeviceProfile, dumps(profile)) == profile
    assert profile.engine.startswith("onnxruntime")
    assert (profile.threads, profile.machine.cores) == (1, usable_cores())
    assert profile.cost.measured_on == "small_cnn"
    assert profile.cost.measurements >= 8
    assert 0 < profile.memory_free_bytes <= profile.memory_total_bytes
    assert profile.storage_free_bytes > 0
    assert profile.power is not None
    assert profile.download_bytes_per_second is None
    assert told[0][0] == "models"
    assert {"steps", "memory", "fit"} <= {what for what, _ in told}
    assert all(0 <= share <= 1 for _, share in told)


def test_predictions_grow_with_the_model_and_exceed_what_python_takes() -> None:
    profile = measure(ProfileRequest(engine="onnx", threads=1, bundles=[BUNDLE], seconds=4))
    whole, narrow = (predict(profile, leading_channels(bundle().graph, f).cost, batch=32) for f in (1.0, 0.25))
    assert whole.round_seconds is not None
    assert narrow.round_seconds is not None
    assert whole.round_seconds > narrow.round_seconds > 0
    assert whole.peak_bytes is not None
    assert narrow.peak_bytes is not None
    assert whole.peak_bytes > narrow.peak_bytes > 20 * 2**20


def test_without_a_model_the_built_in_ones_are_measured() -> None:
    profile = measure(ProfileRequest(engine="onnx", seconds=12))
    assert profile.threads == usable_cores()
    measured_on = profile.cost.measured_on or ""
    assert measured_on.startswith("built-in ")
    assert set(measured_on.removeprefix("built-in ").split(", ")) == set(MODELS)


def test_a_device_without_onnx_is_told_what_was_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnx" else find_spec(name))
    notes: list[str] = []
    profile = measure(ProfileRequest(engine="onnx", threads=1, bundles=[BUNDLE], seconds=4), note=notes.append)
    assert any("install onnx" in note for note in notes)
    cost = profile.cost
    assert cost.forward_seconds_per_multiply_add == cost.backward_seconds_per_multiply_add


@pytest.mark.parametrize("changes", [{"seconds": 0.0}, {"seconds": float("nan")}, {"threads": 0}, {"threads": -2}])
def test_an_order_that_measures_nothing_is_refused(changes: dict[str, float]) -> None:
    with pytest.raises(EdgeFLError, match="too few to measure") as caught:
        measure(ProfileRequest(**changes))  # type: ignore[arg-type]
    assert "at least 3 seconds and 1 thread" in caught.value.fix


def test_an_engine_that_is_not_here_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert installed_engines() == ()
    with pytest.raises(MissingDependencyError, match=r"onnxruntime.*edgefl-toolkit\[device\]"):
        measure(ProfileRequest())


def test_executorch_needs_programs_and_says_how_to_get_them(tmp_path: Path) -> None:
    write_bundle(bundle(), tmp_path)
    with pytest.raises(EdgeFLError, match="at least 3 widths or cuts, but the bundles have 0") as caught:
        program_cases([tmp_path])
    assert "edgefl export --programs" in caught.value.fix


def test_the_built_in_programs_differ_in_width_cut_and_batch() -> None:
    cases = program_cases()
    assert {case.program.model for case in cases} == set(MODELS)
    for model in MODELS:
        mine = [case for case in cases if case.program.model == model]
        assert len({case.cost.parameters for case in mine}) >= 2
        assert len({case.mask.trained for case in mine}) == 2
        assert {case.batch for case in mine} == {8, 32}
    for case in cases:
        assert case.program.program is not None
        check_training_program(case.program.program, case.mask)


def test_a_case_of_a_program_survives_the_way_to_another_process(tmp_path: Path) -> None:
    case = min(program_cases(), key=lambda case: case.multiply_adds)
    write_case(tmp_path, case, "onnx", ThreadSettings(1))
    found, _ = read_case(tmp_path)
    assert found.program.program == case.program.program
    assert found.mask.digest == case.mask.digest


@pytest.mark.thorough
def test_executorch_is_measured_with_the_programs_that_were_exported(tmp_path: Path) -> None:
    folders = []
    for number, (keep, batch) in enumerate([("0.1", "4"), ("0.2", "8"), ("0.3", "4"), ("0.4", "8")]):
        folder = tmp_path / str(number)
        words = ["export", "--model", "mlp", "--keep", keep, "--batch", batch, "--format", "executorch", "--train"]
        assert main([*words, "--no-check", "--out", str(folder)]) == 0
        folders.append(folder)
    profile = measure(ProfileRequest(engine="executorch", threads=1, bundles=folders, seconds=20))
    assert profile.engine.startswith("executorch")
    assert (profile.cost.measured_on, profile.cost.measurements) == ("mlp", 4)
