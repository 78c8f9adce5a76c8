"""A real coordinator for the Java client: a process of its own, with its own certificate and pairing URIs."""

import json
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.android_demo.conftest import ROOT

FEDERATION = """
[federation]
name = "{name}"
model = "{model}"
seed = 3
[strategy]
name = "{strategy}"
width = "full"
{settings}
[work]
epochs = {epochs}
batch_size = 16
[rounds]
count = {rounds}
deadline = "5 min"
[selection]
devices = 1
available_within = "90 s"
[budget]
adapt = false
"""
MODEL = ROOT / "tests" / "device_runtime" / "small_cnn.zip"

# Of an ordinary machine. For clients that need not measure themselves.
PROFILE = {
    "schema": "edgefl.device_profile/1",
    "device_name": "a test",
    "machine": {"architecture": "x86_64", "system": "Linux", "cores": 2},
    "engine": "onnxruntime 1.29.0",
    "threads": 1,
    "cost": {
        "overhead_seconds": 0.0002,
        "forward_seconds_per_multiply_add": 1e-10,
        "backward_seconds_per_multiply_add": 1.5e-10,
        "memory_base_bytes": 120_000_000,
        "memory_bytes_per_activation_byte": 2.0,
        "relative_error": 0.1,
        "measurements": 12,
    },
    "memory_total_bytes": 4_000_000_000,
    "memory_free_bytes": 2_000_000_000,
    "storage_free_bytes": 10_000_000_000,
    "measured_at": "2026-01-01T00:00:00Z",
}


def write_federation(folder: Path, name: str, strategy: str, settings: str, epochs: int = 2, rounds: int = 2) -> Path:
    path = folder / f"{name}.toml"
    fields = {"name": name, "strategy": strategy, "settings": settings, "epochs": epochs, "rounds": rounds}
    path.write_text(FEDERATION.format(model=MODEL, **fields), encoding="utf-8")
    return path


def write_digits(path: Path, count: int = 200) -> Path:
    """Write handwritten digits as a device has them, in float32 from 0 to 1; the test part is for Python's reader."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    x, y = (digits.images[:, None] / 16).astype(np.float32), digits.target.astype(np.int64)
    np.savez(path, x=x[:count], y=y[:count], x_test=x[-50:], y_test=y[-50:])
    return path


@contextmanager
def serving(folder: Path, *federations: Path) -> Generator[dict[str, Any]]:
    """Run `edgefl serve --tls` and yield what it says about itself."""
    command = [sys.executable, "-m", "edgefl", "serve", *map(str, federations), "--tls", "--json", "--port", "0"]
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--state", str(folder / "state")], stdout=subprocess.PIPE, stderr=log, text=True
        )
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        process.stdout.close()


def pairing_uri(served: dict[str, Any], federation: str) -> str:
    found = [each["pairing_uri"] for each in served["federations"] if each["name"] == federation]
    return str(found[0])


def edgefl(*arguments: str) -> str:
    """Run the command line as a user, and return what it prints."""
    done = subprocess.run([sys.executable, "-m", "edgefl", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fed(served: dict[str, Any], *arguments: str) -> str:
    """Run `edgefl fed` as the operator of a coordinator."""
    where = ["--url", served["pairing_uri"], "--token-file", served["admin_token_file"]]
    return edgefl("fed", *arguments, *where)


def run_devices(commands: Mapping[str, Sequence[str]], seconds: float) -> None:
    """Run the command of each device until all have ended; fail if one does, or takes longer than this."""
    running = {
        device: subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for device, command in commands.items()
    }
    try:
        for device, process in running.items():
            said = process.communicate(timeout=seconds)[1]
            if process.returncode:
                raise AssertionError(f"{device} ended with {process.returncode}: {said}")
    finally:
        for process in running.values():
            process.kill()


def task_rows(served: dict[str, Any], name: str, rounds: int) -> list[dict[str, Any]]:
    """Return the tasks of a federation's rounds, in their order; what comes after is for each device alone."""
    rows = json.loads(fed(served, "telemetry", name, "--format", "json"))["rows"]
    return sorted((row for row in rows if row["round"] < rounds), key=lambda row: int(row["round"]))


def last_accuracy(served: dict[str, Any], name: str) -> float:
    """Return the accuracy of a federation's newest model that was evaluated."""
    rounds = json.loads(fed(served, "rounds", name, "--json"))["rounds"]
    return float(next(each["report"]["accuracy"] for each in reversed(rounds) if "accuracy" in each["report"]))
