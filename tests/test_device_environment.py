"""A device's environment, as somebody would install it on a Raspberry Pi: the extra `device` and nothing else."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edgefl.data import load
from edgefl.masks import full_mask, leading_channels
from edgefl.values import LocalWork
from tests.device_runtime.coordinator import KEY, Coordinator, tasks
from tests.device_runtime.federation import bundle
from tests.device_runtime.http_coordinator import serving
from tests.installing import copy_project, install, packages_in

MOST_BYTES = 4_000_000

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("device")
    copy_project(folder / "source")
    install(folder / "venv", f"{folder / 'source'}[device]")
    digits = load("digits")
    np.savez(folder / "mine.npz", x=digits.batch(range(300))[0], y=digits.train.labels[:300])
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def edgefl(environment: Path, *words: str) -> subprocess.CompletedProcess[str]:
    home = environment / "user"
    home.mkdir(exist_ok=True)
    variables = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTHONPATH")}
    variables |= {"HOME": str(home), "EDGEFL_JOIN_KEY": KEY}
    variables.pop("ORT_DISABLE_TELEMETRY", None)
    command = [str(environment / "venv" / "bin" / "edgefl"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=environment, env=variables)


def test_a_device_measures_itself_joins_and_predicts(environment: Path) -> None:
    told = edgefl(environment, "profile", "--seconds", "8", "--out", "profile.json")
    assert told.returncode == 0, told.stderr
    assert "typically within" in told.stdout

    coordinator = Coordinator()
    masks = [full_mask(bundle().graph), leading_channels(bundle().graph, 0.5)]
    tasks(coordinator, masks, work=LocalWork(epochs=6, batch_size=32))
    with serving(coordinator) as url:
        told = edgefl(environment, "join", url, "--data", "mine.npz", "--profile", "profile.json")
    assert told.returncode == 0, told.stderr
    assert set(coordinator.results) == {"task-1", "task-2"}

    told = edgefl(environment, "predict", "--data", "mine.npz", "--part", "train", "--json")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["right"] > 0.6


def test_it_holds_few_packages_and_little_of_our_own(environment: Path) -> None:
    names = {name.lower() for name in packages_in(environment / "venv")}
    assert {"edgefl-toolkit", "numpy", "onnxruntime", "safetensors", "httpx"} <= names
    assert not names & {"torch", "executorch", "onnx", "fastapi", "pydantic", "scipy", "scikit-learn"}
    (packages,) = (environment / "venv" / "lib").glob("python3*/site-packages")
    ours = [path for room in ("edgefl", "device_runtime") for path in (packages / room).rglob("*")]
    assert sum(path.stat().st_size for path in ours if "__pycache__" not in path.parts) < MOST_BYTES


def test_nobody_is_told_anything(environment: Path) -> None:
    """onnxruntime keeps what it will report to its maker in the user's cache folder."""
    edgefl(environment, "predict", "--data", "mine.npz", "--part", "train", "--json")
    assert not list((environment / "user").rglob("*icrosoft*"))


def test_an_engine_that_is_not_installed_is_named_with_its_remedy(environment: Path) -> None:
    told = edgefl(environment, "profile", "--engine", "executorch")
    assert told.returncode == 1
    assert "pip install 'edgefl-toolkit[executorch]'" in told.stderr
