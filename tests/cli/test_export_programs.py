"""`edgefl export --programs` as a person meets it."""

import contextlib
import json
from pathlib import Path

import pytest

from edgefl.artifacts.bundle import pack_bundle, read_bundle, unpack_bundle
from edgefl.cli.main import main

WORDS = ("export", "--no-check", "--model", "my_net:make", "--input", "6", "--out", "out")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model that compiles in a second, and an empty cache."""
    (tmp_path / "my_net.py").write_text(
        "from torch import nn\ndef make():\n    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))\n"
    )
    monkeypatch.setenv("EDGEFL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))  # processes start in the folder of the model
    return tmp_path


def test_a_bundle_gets_a_ladder_which_is_listed_and_compiled_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (*WORDS, "--programs", "--widths", "1", "--cuts", "2", "--batch-sizes", "4", "--jobs", "1")
    with contextlib.chdir(folder):
        assert main([*words]) == 0, capsys.readouterr().err
        said = capsys.readouterr()
        assert main([*words, "--json"]) == 0
        again = json.loads(capsys.readouterr().out)
        assert main(["inspect", "out"]) == 0
        listed = capsys.readouterr().out
    assert "2 of 2 programs" in said.err
    assert "1 from 2, batch 4" in said.out
    assert "1 to predict, batch 4" in said.out
    assert "was cached" not in said.out
    assert [row["seconds"] for row in again["programs"]["compiled"]] == [None, None]
    assert (again["programs"]["failed"], again["programs"]["left_out"]) == ({}, [])
    bundle = read_bundle(folder / "out")
    assert unpack_bundle(pack_bundle(bundle)).manifest.programs == bundle.manifest.programs  # a coordinator's way
    for row in again["programs"]["compiled"]:
        assert f"{row['bytes']:,} bytes: {row['rung']}" in listed


def test_what_a_time_limit_leaves_out_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.chdir(folder):
        assert main([*WORDS, "--programs", "--minutes", "0"]) == 0
    said = capsys.readouterr().out
    assert "no programs" in said
    assert "the time limit left out" in said
    assert "such as 1 all layers, batch 32" in said
    assert read_bundle(folder / "out").manifest.programs == ()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--widths", "1"), "are for --programs"),
        (("--programs", "--widths", "1,wide"), "--widths is '1,wide'"),
        (("--programs", "--widths", "2"), "the widths of the ladder are [2.0]"),
        (("--programs", "--batch-sizes", "0"), "--batch-sizes is '0'"),
        (("--programs", "--jobs", "0"), "0 is not a number of jobs"),
        (("--programs", "--cuts", "stem"), "no cut of the model begins at 'stem'"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    words: tuple[str, ...], problem: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.chdir(folder):
        assert main([*WORDS, *words]) == 1
    assert problem in capsys.readouterr().err
    assert not (folder / "out").exists()


def test_programs_of_a_federation_are_compiled_by_another_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--federation", "digits", "--programs", "--out", "out"]) == 1
    assert "edgefl compile" in capsys.readouterr().err
