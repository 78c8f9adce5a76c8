"""`edgefl join` and `edgefl predict` as a person meets them: real processes, real HTTP."""

import argparse
import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from device_runtime.agent.agent_home import AgentHome
from edgefl.cli.join_pairing import join_key
from edgefl.cli.main import main
from edgefl.data import described_by, load
from edgefl.masks import full_mask, leading_channels
from edgefl.pairing import Pairing
from edgefl.values import LocalWork, dumps
from edgefl.wire import decode_result
from tests.device_runtime.coordinator import KEY, Coordinator, tasks
from tests.device_runtime.federation import bundle
from tests.device_runtime.hostile import large_product
from tests.device_runtime.http_coordinator import serving
from tests.values.samples import PROFILE


def command(home: Path, url: str, *words: str) -> list[str]:
    profile = home.parent / "profile.json"
    profile.write_text(dumps(PROFILE), encoding="utf-8")
    common = ["--home", str(home), "--data", "digits", "--client", "2/5", "--threads", "1", "--profile", str(profile)]
    return [sys.executable, "-m", "edgefl.cli.main", "join", url, *common, *words]


def test_a_device_joins_trains_and_predicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coordinator = Coordinator(sample=described_by(load("digits"), bundle().sample))
    tasks(coordinator, [full_mask(bundle().graph)] * 2, work=LocalWork(epochs=8, batch_size=32), rounds=3)
    home = tmp_path / "home"
    with serving(coordinator) as url:
        done = subprocess.run(
            command(home, url), env=os.environ | {"EDGEFL_JOIN_KEY": KEY}, capture_output=True, text=True, timeout=120
        )
    assert done.returncode == 0, done.stderr
    assert "joined http://127.0.0.1" in done.stderr
    assert "task task-2: accepted" in done.stderr
    assert "the federation is over" in done.stderr
    assert KEY not in done.stderr
    (enrolment,) = coordinator.enrolments.values()
    assert enrolment.capabilities is not None
    assert enrolment.capabilities.client.name == "edgefl-python"
    assert stat.S_IMODE((home / "identity.json").stat().st_mode) == 0o600
    result = decode_result(coordinator.results["task-2"], bundle().graph).result
    assert result.samples < 1797 / 5
    first = decode_result(coordinator.results["task-1"], bundle().graph).result
    assert first.telemetry.transfer.down_bytes > 10_000
    assert result.telemetry.transfer.down_bytes == 0  # everything was there already
    assert main(["predict", "--data", "digits", "--part", "train", "--home", str(home), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["right"] > 0.7
    assert len(said["answers"]) > 1000
    assert main(["predict", "--data", "digits", "--part", "train", "--first", "3", "--home", str(home)]) == 0
    text = capsys.readouterr().out
    assert "sample 2: " in text
    assert "of 3 right, by a model of round 3 with 100.0% of the parameters" in text


def test_a_device_whose_data_is_not_the_federations_does_not_join(tmp_path: Path) -> None:
    sample = replace(bundle().sample, shape=(3, 32, 32))
    coordinator = Coordinator(sample=sample)
    home = tmp_path / "home"
    with serving(coordinator) as url:
        done = subprocess.run(
            command(home, url), env=os.environ | {"EDGEFL_JOIN_KEY": KEY}, capture_output=True, text=True, timeout=60
        )
    assert done.returncode == 1
    assert "'digits' has the shape (1, 8, 8), but this federation's samples have (3, 32, 32)" in done.stderr
    assert not coordinator.enrolments


def test_a_signal_stops_it_within_five_seconds_and_nothing_is_lost(tmp_path: Path) -> None:
    coordinator = Coordinator()
    tasks(coordinator, [leading_channels(bundle().graph, 0.5)], work=LocalWork(epochs=400, batch_size=16))
    home = tmp_path / "home"
    with serving(coordinator) as url:
        words = command(home, url, "--key", KEY, "--checkpoint-seconds", "0.5")
        device = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not list(home.glob("checkpoints/*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        device.send_signal(signal.SIGTERM)
        _, said = device.communicate(timeout=5)
    assert device.returncode == 0, said
    assert not coordinator.results
    assert list(home.glob("checkpoints/*"))


def children_of(pid: int) -> set[int]:
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found |= {int(child) for child in (thread / "children").read_text().split()}
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_signal_stops_it_in_the_middle_of_an_operation_that_takes_minutes(tmp_path: Path) -> None:
    coordinator = Coordinator()
    tasks(coordinator, [full_mask(bundle().graph)], deadline_seconds=1e9)
    graph = large_product(coordinator.artifacts[str(coordinator.plans[0].graph)], 16_000)
    coordinator.plans[0] = replace(coordinator.plans[0], graph=coordinator.keep(graph))
    home = tmp_path / "home"
    with serving(coordinator) as url:
        device = subprocess.Popen(
            command(home, url), stderr=subprocess.PIPE, text=True, env=os.environ | {"EDGEFL_JOIN_KEY": KEY}
        )
        deadline = time.monotonic() + 60
        while not coordinator.downloaded > len(graph) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.0)  # it computes now, or has refused such a graph
        workers = children_of(device.pid)
        assert workers or coordinator.refusals
        device.send_signal(signal.SIGTERM)
        _, said = device.communicate(timeout=6)
    assert device.returncode == 0, said
    deadline = time.monotonic() + 10
    while any(is_running(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(is_running(pid) for pid in workers)


@pytest.mark.parametrize("url", ["http://10.0.0.5:8443", "http://coordinator.local", "http://127.0.0.1.example.org"])
def test_a_key_is_sent_to_another_machine_in_clear_text_only_if_that_is_wanted(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["join", url, "--data", "digits", "--key", "k", "--home", str(tmp_path / "home")]
    assert main(words) == 1
    assert "--insecure" in capsys.readouterr().err
    assert not (tmp_path / "home").exists()


def test_a_key_is_asked_for_where_nobody_else_can_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    asked: list[str] = []

    def typed(prompt: str) -> str:
        asked.append(prompt)
        return f"{KEY}\n"

    monkeypatch.setattr("getpass.getpass", typed)
    coordinator = Coordinator()
    with serving(coordinator) as url:
        assert main(command(tmp_path / "home", url)[3:]) == 0
    assert len(coordinator.enrolments) == 1
    known = join_key(argparse.Namespace(key=None), Pairing(url), AgentHome(tmp_path / "home"))
    assert known is None  # and none is needed
    assert asked == ["join key: "]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["http://127.0.0.1:9", "--data", "digits", "--key", "k"], "cannot be reached"),
        (["http://127.0.0.1:9", "--data", "digits"], "Give the join key with --key"),
        (["ftp://somewhere", "--data", "digits", "--key", "k"], "is not a coordinator URL"),
        (["http://127.0.0.1:9", "--data", "digits", "--client", "6/5"], "'6/5' is not a client"),
        (["http://127.0.0.1:9", "--data", "digits", "--hours", "late"], "'late' are not valid hours"),
        (["http://127.0.0.1:9", "--data", "digits", "--wait", "31"], "--wait is 31.0"),
        (["http://127.0.0.1:9", "--data", "digits", "--engine", "abacus"], "no engine 'abacus'"),
        (["http://127.0.0.1:9", "--data", "nothing.npz"], "'nothing.npz' is neither a known data set"),
    ],
)
def test_what_is_wrong_is_said_at_once(
    words: list[str], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "profile.json").write_text(dumps(PROFILE), encoding="utf-8")
    given = ["--profile", str(tmp_path / "profile.json"), "--home", str(tmp_path / "home")]
    assert main(["join", *words, *given]) == 1
    said = capsys.readouterr().err
    assert problem in said
    assert "Traceback" not in said


def test_a_device_without_a_model_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "--data", "digits", "--home", str(tmp_path)]) == 1
    assert "Let the device train first" in capsys.readouterr().err
