"""`edgefl serve` as an operator meets it: what it refuses before it begins, what it says, and how it ends."""

import os
import shutil
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from device_runtime.agent.transport import HttpTransport, Request, UnreachableError
from edgefl.cli.main import main
from edgefl.pairing import Pairing
from tests.cli.running_coordinator import coordinator, write_federation

TOKEN = "edgefl-admin-" + "a" * 43


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refused(capsys: pytest.CaptureFixture[str], state: Path, *words: str) -> str:
    assert main(["serve", "--state", str(state), "--port", "0", *words]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0", "--insecure-public", "--tls"], "--insecure-public is for a coordinator without TLS"),
        (["--public-name", "a b"], "'a b' is not the name or address of a machine"),
        (["--pin", "sha256:short"], "'sha256:short' is not a pin"),
        (["--pin", "nowhere.pem"], "nowhere.pem cannot be read"),
        (["--port", "70000"], "70000 is not a valid port"),
        (["--private-key", "key.pem"], "a private key but no certificate"),
        (["nowhere.toml"], "nowhere.toml cannot be read: No such file or directory"),
        (["--join-key-file", "key"], "--join-key-file holds one key, but there are 0 federation files"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_is_made(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, tmp_path / "state", *words)
    assert not (tmp_path / "state").exists()


def test_a_federation_file_is_refused_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_federation(tmp_path, more="[limits]\nmost_bites = 5\n")
    said = refused(capsys, tmp_path / "state", str(path))
    assert f"{path}, line 21: field 'limits.most_bites' is not a known field" in said
    assert not (tmp_path / "state").exists()


def test_two_files_cannot_have_one_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_federation(tmp_path)
    shutil.copy(path, tmp_path / "again.toml")
    said = refused(capsys, tmp_path / "state", str(path), str(tmp_path / "again.toml"))
    assert "two files name their federation 'digits'" in said


def test_a_key_file_that_cannot_be_written_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_federation(tmp_path)
    assert "cannot be written" in refused(capsys, tmp_path / "state", str(path), "--join-key-file", str(tmp_path))


def test_a_short_admin_token_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGEFL_ADMIN_TOKEN", "secret")
    said = refused(capsys, tmp_path / "state")
    assert "the admin token is too short" in said
    assert "secret" not in said


def test_there_is_no_option_for_a_secret(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["serve", "--admin-token", TOKEN])
    assert stop.value.code == 2


def test_a_port_that_is_taken_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port}" in refused(capsys, tmp_path / "state", "--port", str(port))


def test_a_federation_is_created_once_and_its_key_shown_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, path = tmp_path / "state", write_federation(tmp_path)
    with coordinator(state, str(path), "--no-start") as running:
        (told,) = running.said["federations"]
        key = running.key_of("digits")
    assert running.process.returncode == 0
    assert told == {
        "name": "digits",
        "state": "created",
        "created": True,
        "join_key": key,
        "join_key_file": None,
        "pairing_uri": Pairing(running.url, key, "digits").page_uri(),
    }
    assert key.startswith("edgefl-key-")
    assert running.said["admin_token_file"] == str(state / "admin-token")
    assert mode(state) == 0o700
    assert mode(state / "admin-token") == 0o600
    log = (tmp_path / "state.log").read_text()
    assert "edgefl-key-" not in log
    assert "edgefl-admin-" not in log
    assert not any(key.encode() in file.read_bytes() for file in state.rglob("*") if file.is_file())

    with coordinator(state, str(path)) as running:
        (told,) = running.said["federations"]
    assert told == {
        "name": "digits",
        "state": "running",
        "created": False,
        "join_key": None,
        "join_key_file": None,
        "pairing_uri": None,
    }

    path.write_text(path.read_text().replace("count = 2", "count = 3"))
    said = refused(capsys, state, str(path))
    assert "the federation 'digits' already exists with other settings" in said
    assert "rounds" in said


def test_a_key_goes_to_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    path, key_file = write_federation(tmp_path), tmp_path / "join-key"
    key_file.write_text("an older one, for everybody to read")
    key_file.chmod(0o644)
    words = [str(path), "--join-key-file", str(key_file)]
    with coordinator(tmp_path / "state", *words, EDGEFL_ADMIN_TOKEN=TOKEN) as running:
        (told,) = running.said["federations"]
    assert (told["state"], told["join_key"], told["join_key_file"]) == ("running", None, str(key_file))
    assert told["pairing_uri"] is None
    assert key_file.read_text().startswith("edgefl-key-")
    assert mode(key_file) == 0o600
    assert not (tmp_path / "state" / "admin-token").exists()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the package openssl")
def test_with_a_certificate_only_who_trusts_it_gets_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate, key = str(tmp_path / "certificate.pem"), str(tmp_path / "private-key.pem")
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=coordinator.local", "-addext", "subjectAltName=DNS:coordinator.local,IP:127.0.0.1"]
    subprocess.run([*make, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    state = tmp_path / "state"
    token = ["--token-file", str(state / "admin-token")]
    with coordinator(state, "--certificate", certificate, "--private-key", key) as running:
        assert running.url.startswith("https://127.0.0.1:")
        assert main(["fed", "list", "--url", running.url, "--certificate", certificate, *token]) == 0
        assert "no federation" in capsys.readouterr().out
        assert main(["fed", "list", "--url", running.url, *token]) == 1
        assert "Pass the signing certificate" in capsys.readouterr().err
        transport = HttpTransport(running.url)
        with pytest.raises(UnreachableError, match=r"certificate is not trusted.*--certificate"):
            transport.send(Request("POST", "/v1/tasks/next", "token"))
        transport.close()
        other = running.url.replace("127.0.0.1", "localhost")  # which the certificate does not name
        assert main(["fed", "list", "--url", other, "--certificate", certificate, *token]) == 1
        assert "cannot be reached" in capsys.readouterr().err
        assert main(["fed", "list", "--url", running.url.replace("https", "http"), *token]) == 1
        assert "Traceback" not in capsys.readouterr().err
    bad = ["--certificate", key, "--private-key", certificate]
    assert "PEM files that belong together" in refused(capsys, state, *bad)


def open_to_others(state: Path) -> dict[Path, str]:
    """Return what is not closed in a state folder, whose coordinator runs."""
    files = [state, *state.rglob("*")]
    assert any(file.suffix == ".sqlite-wal" for file in files)
    return {file: oct(mode(file)) for file in files if mode(file) != (0o700 if file.is_dir() else 0o600)}


def test_other_users_can_read_nothing_whatever_the_umask_and_whatever_was_left_open(tmp_path: Path) -> None:
    state, path = tmp_path / "state", write_federation(tmp_path)
    before = os.umask(0)
    try:
        with coordinator(state, str(path), "--workers", "2"):
            while_running = open_to_others(state)
        for file in [state, *state.rglob("*")]:
            file.chmod(0o777)
        with coordinator(state, str(path)):
            again = open_to_others(state)
    finally:
        os.umask(before)
    assert (while_running, again) == ({}, {})
    log = (tmp_path / "state.log").read_text().splitlines()
    assert len([line for line in log if "were open to other users, and no longer are" in line]) == 1


def test_a_folder_that_all_users_share_is_no_state_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.chmod(0o1777)
    assert "is shared by all users" in refused(capsys, tmp_path)
    assert list(tmp_path.iterdir()) == []
