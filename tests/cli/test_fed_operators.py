"""Tokens and the audit log as an operator meets them: `edgefl fed tokens` and `edgefl fed audit`, on two workers."""

import contextlib
import json
import os
import signal
import sqlite3
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from edgefl.cli.fed.lifetimes import moment, seconds
from edgefl.cli.main import main
from edgefl.errors import EdgeFLError
from tests.cli.running_coordinator import Running, coordinator, write_federation

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""One for all: httpx would load the system's certificates for each request."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("operators")
    with coordinator(folder / "state", str(write_federation(folder)), "--workers", "2") as one:
        yield one


@pytest.fixture(autouse=True)
def connected(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEFL_URL", running.url)
    monkeypatch.setenv("EDGEFL_ADMIN_TOKEN", (running.state / "admin-token").read_text().strip())


def done(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["fed", *words]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["fed", *words]) == 1
    return capsys.readouterr().err


def opens(running: Running, token: str) -> bool:
    """Ask several times, each over a new connection, so that both workers answer, and all of them the same."""
    head = {"Authorization": f"Bearer {token}"}
    found = {httpx.get(f"{running.url}/v1/session", headers=head, verify=NO_TLS).status_code for _ in range(12)}
    assert found == {200} or found <= {401, 429}
    return found == {200}


def test_a_token_is_made_shown_once_listed_rotated_and_revoked(
    running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    token = done(capsys, "tokens", "create", "alice", "--role", "admin", "--expires", "30 days").strip()
    assert token.startswith("edgefl-admin-")
    assert opens(running, token)
    lines = done(capsys, "tokens").splitlines()
    assert lines[0].split() == ["name", "role", "made", "last", "used", "expires", "state"]
    assert [line.split()[0] for line in lines[1:]] == ["admin", "alice", "viewer"]
    assert "in 30 d" in lines[2] or "in 29 d" in lines[2]
    assert token not in "".join(lines)
    new = done(capsys, "tokens", "rotate", "alice").strip()
    assert (opens(running, token), opens(running, new)) == (False, True)
    assert done(capsys, "tokens", "revoke", "alice") == "token alice is revoked\n"
    assert not opens(running, new)
    assert len(done(capsys, "tokens").splitlines()) == 3
    assert len([line for line in done(capsys, "tokens", "--all").splitlines() if "alice" in line]) == 2


def test_the_words_of_tokens_that_make_no_sense_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["create"], "which token to create?"),
        (["revoke", "nobody"], "there is no token 'nobody'"),
        (["revoke", "admin"], "the last admin token"),
        (["list", "alice"], "List all tokens with: edgefl fed tokens"),
        (["create", "x", "--expires", "soon"], "--expires"),
        (["create", "x", "--expires", "0 days"], "Give a time above 0"),
        (["rotate", "admin", "--role", "viewer"], "--role has no meaning for rotate"),
        (["--expires", "7d"], "--expires has no meaning for list"),
        (["create", "admin"], "Choose another name"),
    ):
        assert said in refused(capsys, "tokens", *words), words


def test_the_first_token_can_be_rotated_and_its_file_follows(
    running: Running, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = (running.state / "admin-token").read_text().strip()
    new = done(capsys, "tokens", "rotate", "admin").strip()
    assert (running.state / "admin-token").read_text().strip() == new
    assert (opens(running, old), opens(running, new)) == (False, True)


def test_the_log_of_a_coordinator_is_shown_exported_and_verified(
    running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    done(capsys, "key", "digits", "--label", "the lab")
    shown = done(capsys, "audit", "--since", "1 hour")
    assert "coordinator.start" in shown
    assert "key.create" in shown
    entries: list[dict[str, Any]] = json.loads(done(capsys, "audit", "--since", "2020-01-01", "--json"))["entries"]
    actions = [entry["action"] for entry in entries]
    assert actions[:3] == ["token.create", "token.create", "coordinator.start"]
    start = json.loads(entries[2]["detail"])
    assert (start["workers"], start["database"]) == (2, "sqlite")
    assert {"federation.create", "federation.start", "key.create"} <= set(actions)
    assert json.loads(done(capsys, "audit", "--until", "2020-01-01", "--json")) == {"entries": []}
    assert f"{len(entries)} entries, all in order" in done(capsys, "audit", "--verify")
    assert json.loads(done(capsys, "audit", "--verify", "--json"))["hash"] == entries[-1]["hash"]
    assert "--verify checks the whole log" in refused(capsys, "audit", "--verify", "--since", "7d")
    assert "Give a date such as" in refused(capsys, "audit", "--since", "yesterday")


def test_the_end_of_a_coordinator_is_in_the_log_and_so_is_a_forgery(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for end in (signal.SIGTERM, signal.SIGKILL):
        with coordinator(tmp_path / "state") as one:
            os.kill(one.process.pid, end)
            one.process.wait(30)
    database = tmp_path / "state" / "coordinator.sqlite"
    with contextlib.closing(sqlite3.connect(database)) as forger:
        found = [row[0] for row in forger.execute("SELECT action FROM audit ORDER BY number")]
        assert found == ["token.create", "token.create", "coordinator.start", "coordinator.stop", "coordinator.start"]
        forger.execute("DROP TRIGGER audit_no_update")
        forger.execute("UPDATE audit SET address = '10.0.0.66' WHERE number = 3")
        forger.commit()
    with coordinator(tmp_path / "state") as one:
        monkeypatch.setenv("EDGEFL_URL", one.url)
        assert "entry 3 of the audit log does not follow" in refused(capsys, "audit", "--verify")


@pytest.mark.parametrize(
    ("text", "amount"),
    [("30 days", 2592000), ("1 day", 86400), ("30d", 2592000), ("12 h", 43200), ("2 weeks", 1209600), ("90min", 5400)],
)
def test_lifetimes_are_written_with_units_or_words(text: str, amount: float) -> None:
    assert seconds(text, "--expires") == amount
    assert moment(text, "--since") == pytest.approx(time.time() - amount, abs=5)


@pytest.mark.parametrize("text", ["", "days", "30", "30 daysy", "-1 day", "0 s", "30 lightyears"])
def test_what_is_no_lifetime_is_refused(text: str) -> None:
    with pytest.raises(EdgeFLError, match="--expires"):
        seconds(text, "--expires")
