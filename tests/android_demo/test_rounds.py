"""The Java client in real rounds: over TLS with a pin, beside the Python agent, stopped and started again."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.android_demo.coordinator import PROFILE, fed, pairing_uri, serving, write_digits, write_federation
from tests.android_demo.java_client import JVM, JavaClient

FINE_TUNED = "fine_tune_epochs = 1\nfine_tune_rate = 0.01"
METHODS = {
    "fedavg": f"learning_rate = 0.05\nmomentum = 0.9\n{FINE_TUNED}",
    "fedmrn": f'noise_masks = "signed"\nnoise_bound = 0.05\n{FINE_TUNED}',
}


@pytest.fixture
def client(client_jar: Path, tmp_path: Path) -> JavaClient:
    return JavaClient(client_jar, tmp_path / "phone", write_digits(tmp_path / "mine.npz"))


@contextmanager
def finished(java: JavaClient, folder: Path) -> Generator[dict[str, Any]]:
    """Run every method twice to its end, with a device in Java and with the same device in Python."""
    profile = folder / "profile.json"
    profile.write_text(json.dumps(PROFILE), encoding="utf-8")
    names = [f"{method}-{language}" for method in METHODS for language in ("java", "python")]
    files = [write_federation(folder, name, *method_of(name)) for name in names]
    with serving(folder, *files) as served:
        running = []
        for name in names:
            java.home = folder / name
            command = java.command(pairing_uri(served, name), "--name", "phone")
            if name.endswith("python"):
                command = [sys.executable, "-m", "edgefl", *command[command.index("join") :], "--profile", str(profile)]
            else:
                command += ["--measure-seconds", "1"]
            running.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        for process in running:
            said = process.communicate(timeout=120)[1]
            assert process.returncode == 0, said
        yield served


def method_of(name: str) -> tuple[str, str]:
    method = name.partition("-")[0]
    return method, METHODS[method]


def test_its_rounds_are_those_of_a_python_device(client: JavaClient, tmp_path: Path) -> None:
    """Two rounds of each method and the personal one: every update is accepted, and the models are the same."""
    with finished(client, tmp_path) as served:
        for method in METHODS:
            rows = telemetry(served, f"{method}-java")
            ended = [(row["round"], row["state"], row["samples"]) for row in rows]
            assert ended == [(number, "done", 180) for number in range(3)]
            assert all(row["accuracy"] > 0 and row["memory_scope"] == "process" for row in rows)
            java, python = (model_of(served, f"{method}-{language}", tmp_path) for language in ("java", "python"))
            assert java.keys() == python.keys()
            for name, values in python.items():
                assert np.allclose(java[name], values, rtol=0, atol=1e-5), name
    check_home(tmp_path / "fedavg-java")


def telemetry(served: dict[str, Any], federation: str) -> list[dict[str, Any]]:
    return list(json.loads(fed(served, "telemetry", federation, "--format", "json"))["rows"])


def model_of(served: dict[str, Any], federation: str, folder: Path) -> dict[str, np.ndarray[Any, Any]]:
    path = folder / f"{federation}.safetensors"
    fed(served, "export", federation, "--format", "weights", "--out", str(path))
    return load_file(path)


def check_home(home: Path) -> None:
    """The device's own model and its secret are its owner's alone, and the join key is nowhere."""
    models = json.loads((home / "model" / "models.json").read_text())
    kept = [f"model/{models[name]}" for name in ("graph", "personal", "shared")]
    for name in (*kept, "device.json", "profile.json", "history.jsonl"):
        assert (home / name).stat().st_mode & 0o077 == 0, name
        assert b"edgefl-key-" not in (home / name).read_bytes()


def stop(command: list[str], checkpoint: Path, how: signal.Signals) -> int:
    """Start the client, stop it when it has written a new checkpoint, and return its exit code."""
    before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for _ in range(1200):
            if process.poll() is not None or (checkpoint.exists() and checkpoint.stat().st_mtime_ns != before):
                break
            time.sleep(0.02)
        process.send_signal(how)
        return process.wait(10)


def test_a_task_that_was_cut_off_goes_on(client: JavaClient, tmp_path: Path) -> None:
    """Killed, it goes on from its last checkpoint; stopped politely, it ends with 0. Its one update counts."""
    file = write_federation(tmp_path, "long", "fedavg", "learning_rate = 0.01", epochs=150, rounds=1)
    with serving(tmp_path, file) as served:
        options = ("--tasks", "1", "--checkpoint-seconds", "0.05", "--measure-seconds", "0.5")
        checkpoint = client.home / "task" / "checkpoint.safetensors"
        assert (
            stop(client.command(pairing_uri(served, "long"), *options), checkpoint, signal.SIGKILL) == -signal.SIGKILL
        )
        again = client.command(served["url"], *options)  # the key is no longer needed
        assert stop(again, checkpoint, signal.SIGTERM) == 0
        assert not (client.home / "task" / "result.safetensors").exists()
        done = subprocess.run(again, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert "back as" in done.stderr
        assert list(client.temporary.glob("onnx*/*")) == []
        assert "accepted" in done.stderr
        row = telemetry(served, "long")[0]
        assert (row["state"], row["steps"]) == ("done", 150 * 12)


def test_another_key_than_the_pinned_one_gets_nothing(client: JavaClient, tmp_path: Path) -> None:
    file = write_federation(tmp_path, "one", "fedavg", "")
    with serving(tmp_path, file) as served:
        uri = pairing_uri(served, "one")
        pins = uri.partition("&pin=")[2]
        for wrong in (uri.replace(pins, "sha256:" + 42 * "A" + "A"), uri.replace("&pin=" + pins, "")):
            done = client.run(wrong)
            assert done.returncode == 1
            assert "key" in done.stderr or "certificate" in done.stderr
        assert json.loads(fed(served, "devices", "one", "--json"))["devices"] == []


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--help"], 0, "usage:"),
        (["--version"], 0, "edgefl-java"),
        ([], 2, "usage:"),
        (["leave"], 2, "not a command"),
        (["join", "https://127.0.0.1:9"], 2, "--data"),
        (["join", "https://127.0.0.1:9", "--data", "x.npz", "--colour", "red"], 2, "--colour"),
        (["join", "http://192.0.2.1/", "--data", "x.npz"], 1, "http://"),
        (["join", "https://127.0.0.1:9/join#key=no", "--data", "x.npz"], 1, "key"),
    ],
)
def test_errors_are_explained(client_jar: Path, tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    command = [*JVM, "-jar", str(client_jar), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    )
    assert done.returncode == code
    assert said in done.stdout + done.stderr
    assert "\tat " not in done.stderr
