"""`edgefl backup` on a coordinator that runs, and a coordinator that goes on from the copy."""

import json
from pathlib import Path

import pytest

from edgefl.cli.main import main
from tests.cli.running_coordinator import coordinator, write_federation


def test_a_coordinator_starts_from_a_backup_with_its_federations_and_tokens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    state, copy = tmp_path / "state", tmp_path / "backup"
    with coordinator(state, str(write_federation(tmp_path))):
        assert main(["backup", str(copy), "--state", str(state)]) == 0
        assert "has what the coordinator needs" in capsys.readouterr().out
    assert main(["backup", "--check", str(copy), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bodies"] > 0
    monkeypatch.delenv("EDGEFL_ADMIN_TOKEN", raising=False)
    with coordinator(copy) as running:
        assert main(["fed", "status", "digits", "--url", running.url, "--token-file", f"{state}/admin-token"]) == 0
        assert "running" in capsys.readouterr().out
        assert main(["fed", "audit", "--verify", "--url", running.url, "--token-file", f"{copy}/admin-token"]) == 0


def test_what_cannot_be_backed_up_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backup", str(tmp_path / "copy"), "--state", str(tmp_path)]) == 1
    assert "has no file coordinator.sqlite" in capsys.readouterr().err
    assert main(["backup", "--check", str(tmp_path)]) == 1
    assert "is not a backup" in capsys.readouterr().err
