"""`edgefl report`: a page where it was asked for, and errors that say what to do."""

import sys
from pathlib import Path

import pytest

from edgefl.cli.main import main
from tests.report.runs import tiny_run, written

Capture = pytest.CaptureFixture[str]


def test_the_page_goes_into_the_run_and_its_path_to_stdout(tmp_path: Path, capsys: Capture) -> None:
    folder = written(tiny_run(), tmp_path / "run")
    assert main(["report", str(folder)]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{folder / 'report.html'}\n"
    assert captured.err == ""
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_page_goes_where_it_is_told_to(tmp_path: Path, capsys: Capture) -> None:
    folder, out = written(tiny_run(done=False), tmp_path / "run"), tmp_path / "pages" / "mine.html"
    assert main(["report", str(folder), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}\n"
    assert "is not finished" in out.read_text(encoding="utf-8")
    assert not (folder / "report.html").exists()


def test_where_there_is_no_run_it_says_so(tmp_path: Path, capsys: Capture) -> None:
    assert main(["report", str(tmp_path / "nothing")]) == 1
    captured = capsys.readouterr()
    assert "is not a run folder" in captured.err
    assert "edgefl simulate" in captured.err
    assert captured.out == ""


def test_without_plotly_it_says_what_to_install(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    folder = written(tiny_run(), tmp_path / "run")
    assert main(["report", str(folder)]) == 1
    assert "pip install 'edgefl-toolkit[report]'" in capsys.readouterr().err
    assert not (folder / "report.html").exists()
