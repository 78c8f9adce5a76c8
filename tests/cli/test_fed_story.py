"""`edgefl fed` against a coordinator that runs: one federation from its file to its end, and everything on the way."""

import contextlib
import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pyarrow.parquet  # type: ignore[import-untyped]
import pytest

from edgefl.cli.main import main
from edgefl.data import load
from edgefl.wire import Dense, decode, decode_mask
from tests.cli.running_coordinator import coordinator, joining, write_federation
from tests.device_runtime.federation import bundle

Capture = pytest.CaptureFixture[str]


@dataclass(frozen=True)
class Said:
    """What a command gave."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Story:
    """A federation that has ended, and what was said while it ran."""

    url: str
    token_file: Path
    folder: Path
    created: Said
    started: Said
    key: str
    watched: Said

    def options(self) -> list[str]:
        return ["--url", self.url, "--token-file", str(self.token_file)]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("story")
    with coordinator(folder / "state") as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDGEFL_URL", running.url)
        patch.setenv("EDGEFL_ADMIN_TOKEN", (running.state / "admin-token").read_text().strip())
        created = fed("create", str(write_federation(folder, strategy="fine_tune_epochs = 1")))
        started = fed("start", "digits")
        key = fed("key", "digits", "--uses", "2", "--expires", "7d", "--label", "the lab").out.strip()
        assert key, created.err + started.err
        with joining(running.url, key, folder, 1, 2) as devices:
            watched = fed("status", "digits", "--watch")
            for device in devices:
                _, said = device.communicate(timeout=60)
                assert device.returncode == 0, said
        yield Story(running.url, running.state / "admin-token", folder, created, started, key, watched)


def fed(*words: str) -> Said:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(["fed", *words])
    return Said(code, out.getvalue(), err.getvalue())


def told(capsys: Capture, story: Story, *words: str) -> str:
    code = main(["fed", *words, *story.options()])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return captured.out


def json_of(capsys: Capture, story: Story, *words: str) -> Any:
    return json.loads(told(capsys, story, *words, "--json"))


def refused(capsys: Capture, story: Story, *words: str) -> str:
    assert main(["fed", *words, *story.options()]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


def test_the_verbs_of_a_beginning_say_what_they_did_and_what_comes_next(story: Story) -> None:
    assert story.created.out == "federation digits: created\n"
    assert "edgefl fed start digits" in story.created.err
    assert story.started.out == "federation digits: running\n"
    assert story.key.startswith("edgefl-key-")


def test_watching_ends_with_the_federation(story: Story) -> None:
    assert story.watched.code == 0, story.watched.err
    assert "of 2 rounds" in story.watched.err
    assert "\r" not in story.watched.err  # a bar is for terminals
    lines = {line.split()[0]: line for line in story.watched.out.splitlines()}
    assert "finished" in lines["state"]
    assert "2 of 2 done" in lines["rounds"]
    assert "2 of 2" in lines["updates"]
    assert "355 test samples" in lines["accuracy"]
    assert "on the devices' own data, " in lines["personal"]


def test_the_list_has_a_line_a_federation(story: Story, capsys: Capture) -> None:
    head, line = told(capsys, story, "list").splitlines()[:2]
    assert head.split()[:3] == ["name", "state", "strategy"]
    assert line.split()[:6] == ["digits", "finished", "fedavg", "small_cnn", "2", "2"]
    assert json_of(capsys, story, "list")["federations"][0]["name"] == "digits"


def test_the_status_is_the_server_s_own_json(story: Story, capsys: Capture) -> None:
    status = json_of(capsys, story, "status", "digits")
    assert status["state"] == "finished"
    assert status["settings"]["rounds"]["deadline"] == 60
    assert status["report"]["updates"] == 2


def test_the_rounds_say_what_they_gave(story: Story, capsys: Capture) -> None:
    head, *lines = told(capsys, story, "rounds", "digits").splitlines()
    assert "accuracy" in head
    assert [line.split()[:2] for line in lines] == [["1", "done"], ["2", "done"], ["personal", "done"]]
    assert all("enough updates" in line and "%" in line for line in lines[:2])
    assert "every device answered" in lines[2]
    assert len(json_of(capsys, story, "rounds", "digits")["rounds"]) == 3


def test_the_devices_say_what_they_are_and_what_it_cost_them(story: Story, capsys: Capture) -> None:
    head, *lines = told(capsys, story, "devices", "digits").splitlines()
    assert head.split()[:2] == ["id", "state"]
    assert [line.split()[0] for line in lines] == ["device-1", "device-2"]
    assert all("Küchen-Pi, aarch64, 4 cores" in line for line in lines)
    assert all("done: " in line for line in lines)
    devices = json_of(capsys, story, "devices", "digits")["devices"]
    assert all(device["last_task"]["round"] == 2 for device in devices)


def test_the_telemetry_is_one_table_in_three_forms(story: Story, capsys: Capture, tmp_path: Path) -> None:
    rows = list(csv.DictReader(told(capsys, story, "telemetry", "digits").splitlines()))
    assert [(row["round"], row["device"]) for row in rows] == [
        *(("0", "device-1"), ("0", "device-2"), ("1", "device-1"), ("1", "device-2")),
        *(("2", "device-1"), ("2", "device-2")),
    ]
    assert all(float(row["round_seconds"]) > 0 for row in rows)
    said = told(capsys, story, "telemetry", "digits", "--out", str(tmp_path / "table.parquet"))
    assert "bytes of parquet" in said
    table = pyarrow.parquet.read_table(tmp_path / "table.parquet").to_pylist()
    assert [row["task"] for row in table] == [row["task"] for row in rows]
    assert [row["task"] for row in json_of(capsys, story, "telemetry", "digits")["rows"]] == [
        row["task"] for row in rows
    ]
    saved = json_of(capsys, story, "telemetry", "digits", "--out", str(tmp_path / "table.csv"))
    assert saved == {
        "file": str(tmp_path / "table.csv"),
        "format": "csv",
        "bytes": (tmp_path / "table.csv").stat().st_size,
    }


def test_the_global_model_and_a_device_s_part_come_out(story: Story, capsys: Capture, tmp_path: Path) -> None:
    told(capsys, story, "export", "digits", "--out", str(tmp_path / "model.onnx"))
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    digits = load("digits")
    features, labels = digits.batch(np.arange(len(digits.test)), "test")
    (logits,) = session.run(None, {"x": features})
    accuracy = json_of(capsys, story, "status", "digits")["accuracy"]
    assert np.mean(logits.argmax(axis=1) == labels) == pytest.approx(accuracy)
    told(capsys, story, "export", "digits", "--out", str(tmp_path / "model.safetensors"))
    whole = decode((tmp_path / "model.safetensors").read_bytes()).tensors
    words = ["--device", "device-1", "--format", "weights", "--out", str(tmp_path / "part")]
    assert json_of(capsys, story, "export", "digits", *words)["format"] == "weights"
    part = decode((tmp_path / "part").read_bytes()).tensors
    assert set(part) == set(whole)
    assert all(isinstance(payload, Dense) for payload in part.values())


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--format", "onnx"], {"part": "held"}),
        (["--format", "mask"], {"part": "held"}),
        (["--format", "weights"], {"part": "whole"}),
        (["--format", "onnx", "--whole"], {"part": "whole"}),
        (["--format", "onnx", "--budget", "0.5"], {}),
        (["--format", "onnx", "--device", "device-1"], {}),
    ],
)
def test_an_export_is_of_the_part_that_devices_hold_unless_the_whole_is_asked_for(
    words: list[str], part: dict[str, str], story: Story, capsys: Capture, tmp_path: Path
) -> None:
    said = json_of(capsys, story, "export", "digits", *words, "--out", str(tmp_path / "model"))
    assert {name: value for name, value in said.items() if name == "part"} == part


@pytest.mark.parametrize(("words", "share"), [(["--budget", "0.3"], 0.3), (["--device", "device-1"], 1), ([], 1)])
def test_a_model_of_any_size_is_exported(
    words: list[str], share: float, story: Story, capsys: Capture, tmp_path: Path
) -> None:
    options = ["--federation", "digits", "--out", str(tmp_path), "--json", *story.options()]
    assert main(["export", *words, *options]) == 0
    said = json.loads(capsys.readouterr().out)
    session = onnxruntime.InferenceSession(tmp_path / "infer.onnx", providers=["CPUExecutionProvider"])
    digits = load("digits")
    features, labels = digits.batch(np.arange(len(digits.test)), "test")
    (logits,) = session.run(None, {"x": features})
    assert logits.shape == (len(labels), 10)
    graph = bundle().graph
    mask = decode_mask((tmp_path / "mask.safetensors").read_bytes(), graph)
    assert mask.digest == said["mask"]
    assert mask.cost.parameters <= share * graph.parameters
    assert sum(array.size for array in decode((tmp_path / "weights.safetensors").read_bytes()).arrays.values()) > 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to export"),
        (["--federation", "digits", "--budget", "1.5"], "the budget is 1.5"),
        (["--model", "cnn4", "--budget", "0.5"], "need a federation"),
        (["--federation", "other"], "no federation 'other'"),
    ],
)
def test_an_export_that_is_not_possible_says_why(
    words: list[str], message: str, story: Story, capsys: Capture, tmp_path: Path
) -> None:
    assert main(["export", *words, "--out", str(tmp_path / "out"), *story.options()]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_keys_are_listed_without_themselves_and_revoked(story: Story, capsys: Capture) -> None:
    text = told(capsys, story, "keys", "digits")
    assert story.key not in text
    (line,) = [line for line in text.splitlines() if "the lab" in line]
    assert "used up" in line
    assert "in 6 d" in line or "in 7 d" in line
    made = json_of(capsys, story, "key", "digits")
    assert made["key"].startswith("edgefl-key-")
    assert told(capsys, story, "revoke-key", "digits", made["id"]) == f"key {made['id']} is revoked\n"
    (line,) = [line for line in told(capsys, story, "keys", "digits").splitlines() if line.startswith(made["id"])]
    assert line.endswith("revoked")


def test_a_revoked_device_is_shown_as_such(story: Story, capsys: Capture) -> None:
    assert json_of(capsys, story, "revoke-device", "digits", "device-2") == {"id": "device-2", "revoked": True}
    (line,) = [line for line in told(capsys, story, "devices", "digits").splitlines() if line.startswith("device-2")]
    assert "revoked" in line


def test_a_federation_is_paused_resumed_and_aborted(story: Story, capsys: Capture) -> None:
    file = str(write_federation(story.folder, "second"))
    assert json_of(capsys, story, "create", file)["state"] == "created"
    assert told(capsys, story, "create", file) == "federation second: created\n"  # the same again changes nothing
    assert "you cannot pause it" in refused(capsys, story, "pause", "second")
    for verb, state in (("start", "running"), ("pause", "paused"), ("resume", "running")):
        assert told(capsys, story, verb, "second") == f"federation second: {state}\n"
    assert told(capsys, story, "deadline", "second", "2min") == "federation second: rounds have 2 min\n"
    assert "not a number with a unit" in refused(capsys, story, "deadline", "second", "soon")
    assert "there is nothing to change" in refused(capsys, story, "deadline", "second")
    assert "no open round that could close in 5 s" in refused(capsys, story, "deadline", "second", "--closes-in", "5s")
    assert "none opened yet" in told(capsys, story, "status", "second")
    assert "no device has joined" in told(capsys, story, "devices", "second")
    assert "no round has been opened" in told(capsys, story, "rounds", "second")
    assert "no join key" in told(capsys, story, "keys", "second")
    assert json_of(capsys, story, "abort", "second", "--reason", "wrong labels")["state"] == "aborted"
    assert "aborted: wrong labels" in told(capsys, story, "status", "second")
    assert main(["fed", "status", "second", "--watch", *story.options()]) == 1
    assert "'second' was aborted: wrong labels" in capsys.readouterr().err
    other = write_federation(story.folder, "second", rounds=5)
    assert "the federation 'second' already exists" in refused(capsys, story, "create", str(other))


@pytest.mark.parametrize(
    "words",
    [
        *(["start", "digit"], ["status", "digit"], ["rounds", "digit"], ["devices", "digit"], ["telemetry", "digit"]),
        *(["export", "digit", "--out", "model.onnx"], ["key", "digit"], ["keys", "digit"], ["status", "a/b?c"]),
        *(["revoke-key", "digits", "nothing"], ["revoke-device", "digits", "nothing"]),
        ["export", "digits", "--device", "nothing", "--out", "model.onnx"],
    ],
    ids=" ".join,
)
def test_what_is_not_there_is_said_with_the_server_s_advice(
    words: list[str], story: Story, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    said = refused(capsys, story, *words)
    assert said.startswith("edgefl: error: ")
    assert len(said.splitlines()) == 2
    assert not list(tmp_path.iterdir())


def test_a_wrong_token_is_refused(story: Story, capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("edgefl-admin-" + "b" * 43)
    assert main(["fed", "list", "--url", story.url, "--token-file", str(tmp_path / "token")]) == 1
    assert "this is not an admin or viewer token" in capsys.readouterr().err
