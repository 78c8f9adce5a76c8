"""A coordinator that sends graphs which reach for files, memory or endless time of the device."""

import threading
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

from edgefl.artifacts.bundle import INFER
from edgefl.artifacts.submodel import make_submodel
from edgefl.masks import full_mask
from edgefl.values import Reason
from tests.artifacts.hostile_graphs import HOSTILE, SECRET_TEXT, spoiled, working_folder_with_secret
from tests.device_runtime.agent.test_agent import QUICK, joined
from tests.device_runtime.coordinator import Coordinator
from tests.device_runtime.federation import bundle


@pytest.mark.parametrize("which", ["graph", "inference"])
@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_graph_is_refused_before_a_session_exists(
    how: str, which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[bytes] = []
    real = onnxruntime.InferenceSession

    def record(model: bytes, *args: Any, **named: Any) -> Any:
        opened.append(model)
        return real(model, *args, **named)

    monkeypatch.setattr(onnxruntime, "InferenceSession", record)
    monkeypatch.chdir(working_folder_with_secret(tmp_path))
    coordinator, mask = Coordinator(), full_mask(bundle().graph)
    good = make_submodel(bundle(), mask).training_graph if which == "graph" else bundle().files[INFER]
    graph = spoiled(good, how)
    coordinator.offer(mask, work=QUICK, **{which: coordinator.keep(graph)})
    joined(tmp_path / "home", coordinator).run(threading.Event())
    refusal = coordinator.refusals["task-1"]
    assert refusal.reason in (Reason.BROKEN, Reason.UNSUPPORTED)
    assert "the graph" in refusal.message
    assert graph not in opened
    assert all(SECRET_TEXT not in request.body for request in coordinator.requests)
