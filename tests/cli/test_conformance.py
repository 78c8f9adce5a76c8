"""`edgefl conformance` as a person meets it: real processes, real HTTP."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from edgefl.cli.main import main
from edgefl.conformance.samples import conformance_dataset
from edgefl.data import load
from edgefl.values import dumps
from tests.values.samples import PROFILE

ROWS = (
    "enrolment/lost-answer,training/frozen,downloads/resume,uploads/lost-answer,refusals/unknown-rule,ending/finished"
)


def client(folder: Path) -> str:
    profile = folder / "profile.json"
    profile.write_text(dumps(PROFILE), encoding="utf-8")
    edgefl = shlex.join([sys.executable, "-m", "edgefl.cli.main", "join"])
    return f"{edgefl} {{uri}} --data {{data}} --home {{home}} --threads 1 --profile {profile}"


def test_the_samples_are_those_that_updates_are_compared_with(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    assert main(["conformance", "data", "--out", str(path)]) == 0
    written, used = load(str(path)), conformance_dataset()
    assert (written.train.features == used.train.features).all()
    assert (written.train.labels == used.train.labels).all()
    assert written.normalisation is None


def test_edgefl_join_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "conformance",
        "serve",
        "--only",
        ROWS,
        "--client",
        client(tmp_path),
        "--out",
        str(tmp_path / "report.json"),
    ]
    code = main(words)
    said = capsys.readouterr()
    assert code == 0, said.out
    assert "uploads/lost-answer" in said.out
    assert "docs/protocol.md#an-update-is-never-lost" in said.out
    assert "6 rows: 6 right" in said.out
    assert said.err.count("right") == 6
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["counts"]["right"] == len(report["rows"]) == 6


def test_a_client_that_does_nothing_fails(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = shlex.join([sys.executable, "-c", "pass"])
    assert main(["conformance", "serve", "--only", "enrolment/body,uploads/late", "--json", "--client", nothing]) == 1
    rows = {row["row"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["enrolment/body"]["did"] == "did not enrol"
    assert rows["uploads/late"]["verdict"] == "not reached"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--only", "uploads/sideways"], "there is no row 'uploads/sideways'"),
        (["--seconds", "0"], "--seconds is 0.0"),
        (["--client", "no-such-program"], "no-such-program cannot be started"),
    ],
)
def test_what_is_wrong_is_said_at_once(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "serve", *words]) == 1
    assert problem in capsys.readouterr().err


@pytest.mark.thorough
@pytest.mark.parametrize("more", [[], ["--tls"]], ids=["plain", "tls"])
def test_edgefl_join_passes_every_row(more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", "serve", "--client", client(tmp_path), *more]) == 0, capsys.readouterr().out
