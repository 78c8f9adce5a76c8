"""`edgefl fed` where no coordinator is: what is said about addresses, tokens, certificates and strange servers."""

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from edgefl.cli.fed.api import path_of
from edgefl.cli.main import main
from edgefl.cli.tables import table
from edgefl.values.formatting import format_ago

TOKEN = "edgefl-admin-" + "a" * 43
NOWHERE = "http://127.0.0.1:9"


@contextlib.contextmanager
def answering(
    status: int, *bodies: bytes, location: str | None = None, asked: list[str] | None = None
) -> Iterator[str]:
    """A server that gives these answers in turn, and the last one for ever; an empty one in between is none at all."""
    left = list(bodies)

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            if asked is not None:
                asked.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            body = left.pop(0) if len(left) > 1 else left[0]
            if not body and len(bodies) > 1:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if location is not None:
                self.send_header("Location", location)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815  the names are http.server's

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEFL_ADMIN_TOKEN", TOKEN)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["fed", *words]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    assert TOKEN not in captured.err
    return captured.err


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--url", NOWHERE], "the coordinator at http://127.0.0.1:9 cannot be reached"),
        (["list", "--url", "ftp://somewhere"], "'ftp://somewhere' is not a coordinator URL"),
        (["list", "--url", "http://[::1"], "is not a coordinator URL"),
        (["list", "--url", "https://localhost:9", "--certificate", "/nowhere"], "certificate /nowhere cannot be used"),
        (["create", "/nowhere.toml", "--url", NOWHERE], "/nowhere.toml cannot be read"),
        (["key", "digits", "--uses", "0", "--url", NOWHERE], "--uses is 0"),
        (["key", "digits", "--expires", "7", "--url", NOWHERE], "'7', which has no unit"),
        (["key", "digits", "--expires", "7 MiB", "--url", NOWHERE], "which is a size"),
        (["key", "digits", "--expires=-7d", "--url", NOWHERE], "Give a time above 0"),
        (["telemetry", "digits", "--format", "parquet", "--url", NOWHERE], "Give a file with --out"),
        (["export", "digits", "--out", "/nowhere/m.onnx", "--url", NOWHERE], "/nowhere/m.onnx cannot be written"),
    ],
)
def test_what_cannot_be_done_is_said_in_words(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in refused(capsys, *words)


def test_a_missing_token_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    said = refused(capsys, "list", "--url", NOWHERE)
    assert f"{tmp_path}/.edgefl/coordinator/admin-token: No such file or directory" in said
    assert "Set EDGEFL_ADMIN_TOKEN or give --token-file" in said


def test_a_token_is_found_in_the_state_folder_or_the_file_that_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".edgefl" / "coordinator").mkdir(parents=True)
    (tmp_path / ".edgefl" / "coordinator" / "admin-token").write_text(TOKEN + "\n")
    assert "cannot be reached" in refused(capsys, "list", "--url", NOWHERE)
    (tmp_path / "other").write_text("two words")
    assert "contains invalid characters" in refused(
        capsys, "list", "--url", NOWHERE, "--token-file", str(tmp_path / "other")
    )
    (tmp_path / "other").write_bytes(b"\xff")
    assert "not ASCII text" in refused(capsys, "list", "--url", NOWHERE, "--token-file", str(tmp_path / "other"))


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (404, b'{"error": {"problem": "no such thing", "fix": "Look\\u001b[2J."}}', "no such thing\n  Look\\x1b[2J."),
        (404, b"<html>", "/v1/federations answered with status 404"),
        (500, b'{"error": {}}', "answered with status 500"),
        (302, b"", "answered with status 302"),
        (200, b"<html>", "does not respond like a coordinator"),
    ],
)
def test_what_a_server_says_is_passed_on_and_what_it_does_not_say_is_explained(
    status: int, body: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(status, body) as url:
        assert said in refused(capsys, "list", "--url", url)


@pytest.mark.usefixtures("token")
def test_a_download_that_fails_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.onnx").write_bytes(b"old")
    with answering(404, b"") as url:
        refused(capsys, "export", "digits", "--out", str(tmp_path / "model.onnx"), "--url", url)
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    assert (tmp_path / "model.onnx").read_bytes() == b"old"


@pytest.mark.usefixtures("token")
def test_the_address_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EDGEFL_URL", "http://127.0.0.1:7")
    assert "http://127.0.0.1:7 cannot be reached" in refused(capsys, "list")


@pytest.mark.usefixtures("token")
def test_a_token_goes_unencrypted_to_another_machine_only_with_permission(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("http_proxy", NOWHERE)
    url = "http://nowhere.invalid:9"
    assert "http://nowhere.invalid:9 is not encrypted" in refused(capsys, "list", "--url", url)
    assert "cannot be reached" in refused(capsys, "list", "--url", url, "--insecure")
    monkeypatch.setenv("EDGEFL_URL", url)
    assert "allow it with --insecure" in refused(capsys, "list")


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("words", [["list"], ["start", "digits"], ["export", "digits", "--out", "model.onnx"]])
def test_a_redirect_never_takes_the_token_to_another_host(
    status: int, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []
    with answering(200, b"{}", asked=asked) as elsewhere, answering(status, b"", location=elsewhere) as url:
        said = refused(capsys, *words, "--url", url)
    assert f"redirects to {elsewhere}" in said
    assert asked == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("token")
def test_a_proxy_of_the_environment_does_not_see_what_is_meant_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("http_proxy", NOWHERE)
    with answering(200, b'{"federations": []}') as url:
        assert main(["fed", "list", "--url", url]) == 0
    assert "no federation" in capsys.readouterr().out


def test_a_name_stays_one_part_of_a_path() -> None:
    assert path_of("federations", "../a b/c?d", "rounds") == "/v1/federations/..%2Fa%20b%2Fc%3Fd/rounds"


def test_a_table_aligns_numbers_and_escapes_what_could_forge_rows() -> None:
    text = table(("name", "count"), [("a\nb", 5), ("c", 12345), ("dd", None)])
    assert text.splitlines() == ["name  count", "a\\nb      5", "c     12345", "dd        -"]
    assert format_ago(None, 5.0) == "never"
    assert format_ago(2.0, 65.0) == "1 min 3 s ago"
    assert format_ago(70.0, 65.0) == "0 s ago"  # clocks differ


def told(**changes: Any) -> bytes:
    """A federation in its third round, as a coordinator tells it."""
    latest = {"number": 2, "state": "open", "attempt": 2, "deadline_at": time.time() + 7205}
    status: dict[str, Any] = {"name": "digits", "state": "running", "reason": None, "mode": "rounds", "devices": 6}
    status |= {"model": "cnn", "strategy": "fedavg", "rounds": 10, "rounds_done": 2, "round": latest}
    status |= {"updates": 3, "wanted": 5, "personal": None}
    status |= {"report": {"device_accuracy": 0.5, "accuracy": None, "loss": 0.25}}
    status |= {"created_at": time.time() - 3605}
    return json.dumps(status | changes).encode()


@pytest.mark.usefixtures("token")
def test_a_terminal_gets_a_bar_that_outlives_the_coordinator(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("edgefl.cli.fed.status._EVERY_SECONDS", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    paused = told(state="paused", reason="too few \x1b[2J updates")
    with answering(200, told(round=None, report=None), told(), b"", paused, told(state="finished")) as url:
        assert main(["fed", "status", "digits", "--watch", "--url", url]) == 0
    captured = capsys.readouterr()
    lines = [line.rstrip() for line in captured.err.split("\r")]
    assert lines[1] == "[######........................] 2 of 10 rounds, 6 devices joined, waiting for enough of them"
    assert "[######........................] 2 of 10 rounds, 3 of 5 updates, 2 h left, accuracy 50.0 %" in lines
    assert any("the coordinator does not respond; waiting for it" in line for line in lines)
    assert any(r"paused: too few \x1b[2J updates" in line for line in lines)
    assert lines[-2:] == ["", ""]
    assert "state          finished" in captured.out


@pytest.mark.usefixtures("token")
def test_a_round_that_is_open_is_told_with_its_deadline(capsys: pytest.CaptureFixture[str]) -> None:
    with answering(200, told()) as url:
        assert main(["fed", "status", "digits", "--url", url]) == 0
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in capsys.readouterr().out.splitlines()}
    assert rows["round"] == "3, open, attempt 2"
    assert rows["updates"] == "3 of 5"
    assert rows["deadline"] == "in 2 h"
    assert rows["on"] == "devices 50.0 % of their own validation samples"
    assert rows["created"] == "1 h ago"
