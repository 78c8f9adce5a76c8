"""`edgefl profile` as a person meets it."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from device_runtime.profiler import ProfileRequest
from edgefl.cli.main import main
from edgefl.values import DeviceProfile, loads
from tests.device_runtime.federation import BUNDLE
from tests.values.samples import PROFILE

QUICK = ["profile", "--bundle", str(BUNDLE), "--seconds", "4", "--threads", "1"]


def test_a_person_gets_a_table_and_how_sure_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "profile.json"
    assert main([*QUICK, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    profile = loads(DeviceProfile, out.read_bytes())
    assert profile.engine in shown
    assert "cost measured on" in shown
    assert "typically within" in shown
    assert main(["inspect", str(out)]) == 0
    assert "device profile, version 1" in capsys.readouterr().out


def test_json_on_stdout_is_the_profile_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*QUICK, "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["threads"] == 1
    assert loads(DeviceProfile, captured.out).cost.measured_on == "small_cnn"
    assert "\r" not in captured.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "abacus"], "there is no engine 'abacus'"),
        (["--bundle", "/nowhere"], "/nowhere has no manifest.json"),
        (["--seconds", "0.1"], "too few to measure"),
        (["--coordinator", "pi.local"], "'pi.local' is not a coordinator URL"),
        (["--engine", "onnx,abacus"], "there is no engine 'abacus'"),
        (["--engine", "executorch", "--bundle", str(BUNDLE)], "at least 3 widths or cuts, but the bundles have 0"),
    ],
)
def test_what_cannot_be_measured_is_said_in_words(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", *words]) == 1
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("place", ["", "no folder/profile.json"])
def test_a_place_that_cannot_be_written_to_is_refused_before_measuring(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("device_runtime.profiler.measure", lambda *_: pytest.fail("it measured"))
    assert main([*QUICK, "--out", str(tmp_path / place)]) == 1
    assert f"{tmp_path / place} cannot be written" in capsys.readouterr().err


def test_a_terminal_gets_a_bar_that_is_gone_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def measured(
        order: ProfileRequest, progress: Callable[[str, float], None], note: Callable[[str], None]
    ) -> DeviceProfile:
        progress("steps", 0.5)
        note("It was noisy.")
        return PROFILE

    monkeypatch.setattr("device_runtime.profiler.measure", measured)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["profile"]) == 0
    captured = capsys.readouterr()
    assert "[###############...............] steps" in captured.err
    last_line = captured.err.rpartition("\r")[2]
    assert last_line == "It was noisy.\n"
    assert "Predicted step times are typically within 7 % of measured ones, memory peaks within 3 %." in captured.out
    assert PROFILE.device_name in captured.out
