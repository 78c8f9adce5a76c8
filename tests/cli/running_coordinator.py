"""A coordinator as an operator starts it: `edgefl serve` in a process of its own, on a free port of 127.0.0.1."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgefl.values import DeviceProfile, dumps
from tests.device_runtime.federation import BUNDLE
from tests.values.samples import PROFILE

FEDERATION = """\
[federation]
name = "{name}"
model = "cnn.zip"
seed = 1
[strategy]
name = "fedavg"
learning_rate = 0.1
{strategy}
[work]
epochs = 1
[rounds]
count = {rounds}
deadline = "60 s"
at_least = 2
[selection]
devices = 2
wait_for = 2
[evaluation]
data = "digits"
"""


def write_federation(
    folder: Path, name: str = "digits", *, rounds: int = 2, strategy: str = "", more: str = ""
) -> Path:
    """Write a federation file with its bundle beside it."""
    shutil.copy(BUNDLE, folder / "cnn.zip")
    path = folder / f"{name}.toml"
    path.write_text(FEDERATION.format(name=name, rounds=rounds, strategy=strategy) + more, encoding="utf-8")
    return path


@dataclass(frozen=True)
class Running:
    """A coordinator that answers."""

    process: "subprocess.Popen[str]"
    url: str
    said: Mapping[str, Any]
    """What it printed as JSON when it was ready."""
    state: Path

    def key_of(self, name: str) -> str:
        """The join key that it printed for a federation."""
        (key,) = [one["join_key"] for one in self.said["federations"] if one["name"] == name]
        assert isinstance(key, str)
        return key


@contextlib.contextmanager
def coordinator(state: Path, *words: str, **environment: str) -> Iterator[Running]:
    """Start a coordinator, and stop it in the end as systemd does."""
    command = [sys.executable, "-m", "edgefl", "serve", "--json", "--port", "0", "--state", str(state), *words]
    log = state.parent / f"{state.name}.log"
    with log.open("a") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, env=os.environ | environment
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text()
        said = json.loads(line)
        yield Running(process, said["url"], said, state)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise


@contextlib.contextmanager
def joining(
    url: str, key: str, folder: Path, *numbers: int, profiles: Mapping[int, DeviceProfile] | None = None
) -> Iterator[list["subprocess.Popen[str]"]]:
    """Start devices, each with its part of the digits; those that still run in the end are stopped."""
    known = profiles or {}
    devices = [_join(url, key, folder, number, known.get(number, PROFILE)) for number in numbers]
    try:
        yield devices
    finally:
        for device in devices:
            device.kill()
            device.communicate()


def _join(url: str, key: str, folder: Path, number: int, can: DeviceProfile) -> "subprocess.Popen[str]":
    profile = folder / f"profile-{number}.json"
    profile.write_text(dumps(can), encoding="utf-8")
    command = [
        *(
            sys.executable,
            "-m",
            "edgefl",
            "join",
            url,
            "--name",
            f"device-{number}",
            "--home",
            str(folder / f"{number}"),
        ),
        *("--data", "digits", "--client", f"{number}/5", "--threads", "1", "--profile", str(profile)),
    ]
    environment = os.environ | {"EDGEFL_JOIN_KEY": key}
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
