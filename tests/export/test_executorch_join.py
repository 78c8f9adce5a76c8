"""`edgefl join --engine executorch` and `edgefl predict`, with real processes and a coordinator over HTTP."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from edgefl.artifacts.artifact_store import ArtifactStore
from edgefl.artifacts.bundle import INFER
from edgefl.cli.main import main
from edgefl.masks import Mask, leading_channels
from edgefl.values import ClientPlan, GraphFormat, LocalWork, Program, ProgramRole, digest_of, dumps
from edgefl.wire import decode_result
from export.executorch.program import compile_program
from tests.device_runtime.coordinator import KEY, Coordinator
from tests.device_runtime.federation import bundle
from tests.device_runtime.http_coordinator import serving
from tests.device_runtime.programs import inference_document, training_document
from tests.export.test_executorch_engine import model
from tests.values.samples import PROFILE


@cache
def programs() -> dict[ProgramRole, tuple[Program, bytes]]:
    """Programs of half the model: batches of 64 to train with, and of 16 to predict with."""
    import torch

    half, example = leading_channels(bundle().graph, 0.5), torch.zeros(1, 1, 8, 8)
    wanted = (training_document(half, batch_size=64), inference_document(half, batch_size=16))
    return {said.spec.role: compile_program(model(), example, half.graph, said.spec) for said in wanted}


def offered(coordinator: Coordinator, mask: Mask, work: LocalWork, **changes: str) -> ClientPlan:
    """A plan with both programs."""
    named = {}
    for field, role in (("program", ProgramRole.TRAIN), ("inference_program", ProgramRole.INFER)):
        document, pte = programs()[role]
        coordinator.keep(pte)
        named[field] = coordinator.keep(dumps(document).encode())
    return coordinator.offer(mask, work=work, **named, **changes)


def joined(tmp_path: Path, url: str, *words: str) -> str:
    profile = tmp_path / "profile.json"
    profile.write_text(dumps(replace(PROFILE, engine="executorch 1.4.1")))
    command = [sys.executable, "-m", "edgefl.cli.main", "join", url, "--engine", "executorch", "--threads", "1"]
    command += ["--home", str(tmp_path / "home"), "--data", "digits", "--client", "2/5", "--profile", str(profile)]
    variables = os.environ | {"EDGEFL_JOIN_KEY": KEY}
    done = subprocess.run([*command, *words], env=variables, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_an_executorch_device_trains_a_task_by_its_program_and_predicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    coordinator, mask = Coordinator(), leading_channels(bundle().graph, 0.5)
    work = LocalWork(epochs=8, batch_size=32)
    offered(coordinator, mask, work, task_id="with-program")
    coordinator.offer(mask, task_id="with-graph", work=work)  # from before its engine changed
    with serving(coordinator) as url:
        said = joined(tmp_path, url, "--tasks", "1")
        (enrolment,) = coordinator.enrolments.values()
        assert enrolment.capabilities is not None
        assert [engine.format for engine in enrolment.capabilities.engines] == [GraphFormat.EXECUTORCH]
        assert "task with-program: accepted" in said
        asked = {request.path.rpartition("/")[2] for request in coordinator.requests}
        assert not {digest_of(bundle().files[INFER]), coordinator.plans[0].graph} & asked
        words = ["predict", "--data", "digits", "--part", "train", "--home", str(tmp_path / "home")]
        assert main([*words, "--json"]) == 0
        by_program = json.loads(capsys.readouterr().out)
        assert main([*words, "--engine", "onnx"]) == 1
        assert "is stored for the engine 'executorch'" in capsys.readouterr().err
        joined(tmp_path, url)
    assert set(coordinator.results) == {"with-program", "with-graph"}
    results = {task: decode_result(body, bundle().graph).result for task, body in coordinator.results.items()}
    assert results["with-program"].steps == results["with-graph"].steps
    assert results["with-program"].loss == pytest.approx(results["with-graph"].loss, rel=1e-3)
    assert results["with-program"].accuracy == pytest.approx(results["with-graph"].accuracy, abs=0.05)
    assert main([*words, "--json"]) == 0
    by_graph = json.loads(capsys.readouterr().out)
    assert by_program["right"] > 0.6
    assert by_program["right"] == pytest.approx(by_graph["right"], abs=0.02)


WITHOUT_ONNXRUNTIME = """
import sys, threading
from pathlib import Path

sys.modules["onnxruntime"] = sys.modules["onnx"] = None
from device_runtime.agent.task_worker import TrainerInProcess
from device_runtime.engines import ThreadSettings, installed_engines, open_engine
from edgefl.cli.main import main
from edgefl.values import ClientPlan, loads
from device_runtime.local_data import LocalData
from device_runtime.trainer import Trainer
from edgefl.data import load

assert installed_engines() == ("executorch",)
home = Path(sys.argv[1])
engine = open_engine(None, ThreadSettings(1))
trainer = Trainer(engine, LocalData.whole(load("digits")), None, threads=1, device_id="pi-1")
worker = TrainerInProcess(lambda device: trainer, home / "cache", home / "personal", engine=engine.format)
plan = loads(ClientPlan, (home / "plan.json").read_bytes())
assert len(worker.size(plan, threading.Event(), memory_bytes=None).programs) == 2
worker.train(plan, threading.Event(), memory_bytes=None, down_bytes=0)
sys.exit(main(["predict", "--data", "digits", "--home", str(home), "--json"]))
"""


def test_a_device_without_onnxruntime_trains_evaluates_and_predicts(tmp_path: Path) -> None:
    coordinator, mask = Coordinator(), leading_channels(bundle().graph, 0.5)
    plan = offered(coordinator, mask, LocalWork(epochs=1, batch_size=32))
    store = ArtifactStore(tmp_path / "cache")
    for content in coordinator.artifacts.values():
        store.put(content)
    (tmp_path / "plan.json").write_text(dumps(plan))
    command = [sys.executable, "-c", WITHOUT_ONNXRUNTIME, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["right"] > 0.6
