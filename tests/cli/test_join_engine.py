"""Which engine and which profile `edgefl join` uses."""

import argparse
from pathlib import Path
from typing import Any

import pytest

import device_runtime.engines
import device_runtime.engines.engine
import device_runtime.profiler
import device_runtime.profiler.separate_process
from device_runtime.agent.client import CoordinatorClient
from device_runtime.agent.transport import Reply, Request
from device_runtime.profiler import ProfileRequest
from device_runtime.profiler.cases import Sample
from device_runtime.profiler.federation_programs import FederationPrograms
from edgefl.cli.join_engine import federation_work, own_engine
from edgefl.errors import EdgeFLError
from edgefl.values import DeviceProfile, dump_profiles, dumps, read_profiles
from tests.device_runtime.in_process_transport import InProcessTransport
from tests.device_runtime.profiler.test_engine_choice import STEP, both
from tests.values.samples import MEASUREMENT

PROFILES = both(12, 5)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The engines that were measured, which takes no time here."""
    found: list[str] = []

    def measure(request: ProfileRequest) -> DeviceProfile:
        found.append(str(request.engine))
        return PROFILES[str(request.engine)]

    monkeypatch.setattr(device_runtime.profiler, "measure", measure)
    monkeypatch.setattr(
        device_runtime.profiler.separate_process, "measure_separately", lambda request: (measure(request), [])
    )
    monkeypatch.setattr(device_runtime.engines, "installed_engines", lambda: ("onnx", "executorch"))
    return found


def chosen(folder: Path, engine: str | None, **changes: Any) -> tuple[str, DeviceProfile, list[str]]:
    args = argparse.Namespace(**({"engine": engine, "profile": None, "threads": None} | changes))
    said: list[str] = []
    return (*own_engine(args, folder, lambda: [STEP], said.append), said)


def test_each_engine_is_measured_once_and_stored_beside_the_other(tmp_path: Path, measured: list[str]) -> None:
    for engine in (None, "onnx", "executorch", "executorch", None):
        name, profile, _ = chosen(tmp_path, engine)
        assert profile == PROFILES[name]
    assert measured == ["onnx", "executorch"]
    assert read_profiles((tmp_path / "profile.json").read_bytes()) == tuple(PROFILES.values())


def test_a_stored_profile_of_another_engine_is_not_used(tmp_path: Path, measured: list[str]) -> None:
    (tmp_path / "profile.json").write_text(dumps(PROFILES["onnx"]))
    assert chosen(tmp_path, "executorch")[1] == PROFILES["executorch"]
    assert measured == ["executorch"]


def test_auto_takes_the_faster_engine_and_says_why(tmp_path: Path, measured: list[str]) -> None:
    name, profile, said = chosen(tmp_path, "auto")
    assert (name, profile) == ("executorch", PROFILES["executorch"])
    assert measured == ["onnx", "executorch"]
    assert said[-1] == "onnxruntime: 12 ms a step, executorch: 5 ms a step; taking executorch"


@pytest.mark.parametrize(("broken", "left"), [("onnx", "executorch"), ("executorch", "onnx")])
def test_auto_does_without_an_engine_that_cannot_be_measured(
    broken: str, left: str, tmp_path: Path, measured: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(request: ProfileRequest) -> tuple[DeviceProfile, list[str]]:
        if request.engine == broken:
            raise EdgeFLError("its library is damaged", fix="Install it again.")
        return PROFILES[str(request.engine)], []

    monkeypatch.setattr(device_runtime.profiler.separate_process, "measure_separately", measure)
    name, profile, said = chosen(tmp_path, "auto")
    assert (name, profile) == (left, PROFILES[left])
    assert any("cannot be measured: its library is damaged" in line for line in said)
    assert read_profiles((tmp_path / "profile.json").read_bytes()) == (PROFILES[left],)


def test_auto_without_any_engine_asks_for_onnxruntime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (device_runtime.engines, device_runtime.engines.engine):
        monkeypatch.setattr(module, "installed_engines", lambda: ())
    with pytest.raises(EdgeFLError, match="onnxruntime"):
        chosen(tmp_path, "auto")


def test_a_given_file_with_both_profiles_needs_no_measuring(tmp_path: Path, measured: list[str]) -> None:
    file = tmp_path / "both.json"
    file.write_text(dump_profiles(tuple(PROFILES.values())))
    assert chosen(tmp_path, "auto", profile=str(file))[0] == "executorch"
    assert chosen(tmp_path, None, profile=str(file))[:2] == ("onnx", PROFILES["onnx"])
    assert measured == []


def test_a_given_profile_of_another_engine_is_refused(tmp_path: Path, measured: list[str]) -> None:
    file = tmp_path / "onnx.json"
    file.write_text(dumps(PROFILES["onnx"]))
    with pytest.raises(EdgeFLError, match="has no profile of the engine executorch") as caught:
        chosen(tmp_path, "executorch", profile=str(file))
    assert "edgefl profile --engine executorch --out FILE" in caught.value.fix
    with pytest.raises(EdgeFLError, match="there is no engine 'abacus'"):
        chosen(tmp_path, "abacus")


def test_engines_are_compared_by_the_federations_own_model(tmp_path: Path) -> None:
    def answer(request: Request) -> Reply:
        return Reply(200, {}, dumps(MEASUREMENT).encode()) if request.token == "key" else Reply(503)

    client = CoordinatorClient(InProcessTransport(answer))
    (step,) = federation_work(client, "key")
    assert step["forward_multiply_adds"] == MEASUREMENT.cases[-1].forward_multiply_adds
    assert len(federation_work(client, "another")) == 3  # the built-in models


def test_executorch_is_measured_with_the_federations_programs_if_there_are_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[ProfileRequest] = []

    def measured(request: ProfileRequest) -> tuple[DeviceProfile, list[str]]:
        requests.append(request)
        return PROFILES[str(request.engine)], []

    def none() -> FederationPrograms:
        raise EdgeFLError("it has none", fix="Compile some.")

    monkeypatch.setattr(device_runtime.profiler.separate_process, "measure_separately", measured)
    monkeypatch.setattr(device_runtime.engines, "installed_engines", lambda: ("onnx", "executorch"))
    args = argparse.Namespace(engine="auto", profile=None, threads=None)
    programs = FederationPrograms("mlp", b"", Sample((4,), "float32", 3), ())
    said: list[str] = []
    own_engine(args, tmp_path / "one", lambda: [STEP], said.append, lambda: programs)
    own_engine(args, tmp_path / "two", lambda: [STEP], said.append, none)
    assert [(request.engine, request.programs) for request in requests] == [
        ("onnx", None),
        ("executorch", programs),
        ("onnx", None),
        ("executorch", None),
    ]
    assert len([text for text in said if "The coordinator's programs were not measured: it has none" in text]) == 1
