"""`edgefl compare`: a table, JSON, a page."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from edgefl.cli.main import main
from edgefl.federation import StrategyChoice
from tests.report.runs import asked, tiny_run, written

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    """A run, and one of another strategy that sent half as much and is five points better."""
    first = tiny_run()
    assert first.summary is not None
    better = replace(first.summary, accuracy=0.75, up_bytes=first.summary.up_bytes // 2)
    federation = first.request.federation
    pruning = StrategyChoice(name="hermes", settings=federation.strategy.settings)
    second = replace(asked(first, federation=replace(federation, strategy=pruning)), summary=better)
    return [str(written(first, tmp_path / "plain")), str(written(second, tmp_path / "pruned"))]


def test_a_row_a_run_and_the_differences_to_the_first(folders: list[str], capsys: Capture) -> None:
    assert main(["compare", *folders]) == 0
    captured = capsys.readouterr()
    figures, changes, _, _, differently = captured.out.split("\n\n")
    head, plain, pruned = figures.splitlines()
    assert head.split() == [
        "run",
        "strategy",
        "accuracy",
        "judged",
        "before",
        "personal",
        "kept",
        "time",
        "energy",
        "up",
        "down",
        "updates",
    ]
    assert plain.split()[:4] == ["plain", "fedavg", "70.0", "%"]
    assert pruned.split()[:6] == ["pruned", "hermes", "75.0", "%", "100.0", "%"]
    assert pruned.split()[12:] == ["15", "s", "72", "J", "4.39", "KiB", "17.6", "KiB", "8"]
    assert changes.startswith("beside plain\n")
    told = changes.splitlines()[2]
    assert told.split()[2:4] == ["+5.0", "pp"]
    assert "-50.0 %" in told
    assert [line.split() for line in differently.splitlines()] == [
        ["asked", "plain", "pruned"],
        ["strategy", "fedavg", "hermes"],
    ]
    assert captured.err == ""


def test_json_has_every_figure(folders: list[str], capsys: Capture) -> None:
    assert main(["compare", "--json", *folders]) == 0
    told = json.loads(capsys.readouterr().out)
    plain, pruned = told["runs"]
    assert (plain["name"], plain["strategy"], plain["finished"]) == ("plain", "fedavg", True)
    assert plain["figures"]["simulated_seconds"] == 15.0
    assert pruned["differences"]["accuracy"] == pytest.approx(0.05)
    assert pruned["asked_differently"] == {"strategy": "hermes"}
    assert told["warnings"] == []
    assert told["equal_cost"]["budgets"]["seconds"] == 25.0
    assert [run["name"] for run in told["equal_cost"]["runs"]] == ["plain", "pruned"]
    assert told["equal_cost"]["targets"][1] == {"share": 0.9, "accuracy": pytest.approx(0.63)}
    assert told["equal_cost"]["runs"][0]["costs"][1]["up_bytes"] == 9000


def test_runs_are_compared_at_equal_cost(folders: list[str], capsys: Capture, tmp_path: Path) -> None:
    short = written(tiny_run(rounds=1, done=False), tmp_path / "short")
    assert main(["compare", folders[0], str(short)]) == 0
    _, _, at_cost, to_reach = capsys.readouterr().out.split("\n\n")
    title, head, plain, cut = at_cost.splitlines()
    assert title.startswith("accuracy at equal cost")
    assert head.split("  ")[-1].strip() == "8.79 KiB both ways"
    assert plain.split()[2:4] == cut.split()[2:4] == ["30.0", "%"]
    lines = [" ".join(line.split()) for line in to_reach.splitlines()]
    assert lines[0].startswith("to reach of the best run strategy time energy")
    assert lines[1] == "56.0 % 80 % plain fedavg 25 s 72 J 8.79 KiB 17.6 KiB 26.4 KiB"
    assert lines[2] == "56.0 % 80 % short fedavg - - - - -"


def test_a_page_with_curves_over_each_other(folders: list[str], capsys: Capture, tmp_path: Path) -> None:
    out = tmp_path / "compared.html"
    assert main(["compare", *folders, "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.err == f"wrote {out}\n"
    assert captured.out.startswith("run ")
    page = out.read_text(encoding="utf-8")
    assert page.count('role="img"') == 15
    assert "Accuracy of the global model at equal cost" in page
    assert "+5.0 pp" in page


def test_the_table_needs_no_plotly(folders: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    assert main(["compare", *folders]) == 0
    assert main(["compare", *folders, "--out", "page.html"]) == 1
    assert "pip install 'edgefl-toolkit[report]'" in capsys.readouterr().err


def test_other_data_is_compared_with_a_warning(folders: list[str], capsys: Capture, tmp_path: Path) -> None:
    other = written(asked(tiny_run(), data="mnist"), tmp_path / "other")
    assert main(["compare", folders[0], str(other)]) == 0
    captured = capsys.readouterr()
    assert "warning: These runs are evaluated on different test samples (digits, mnist)" in captured.err
    assert "mnist" in captured.out


@pytest.mark.parametrize(
    ("words", "message"),
    [(["plain"], "only one run was given"), (["plain", "nowhere"], "nowhere is not a run folder")],
)
def test_what_cannot_be_compared_says_why(
    words: list[str], message: str, folders: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(folders[0]).parent)
    assert main(["compare", *words]) == 1
    assert message in capsys.readouterr().err
