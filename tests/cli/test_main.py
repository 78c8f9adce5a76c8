"""The command line as a person meets it: exit codes, messages, streams."""

import re
import subprocess
from pathlib import Path

import pytest

from edgefl import __version__
from edgefl.cli import inspect as inspect_verb
from edgefl.cli.main import main, make_parser

GOLDEN = Path(__file__).parents[1] / "golden"


def verbs() -> list[str]:
    return re.findall(r"^    (\w+)\b", make_parser().format_help(), re.MULTILINE)


def test_version_is_printed_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["--version"])
    assert exit_info.value.code == 0
    assert capsys.readouterr().out == f"edgefl {__version__}\n"


def test_every_verb_has_a_help_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert {"data", "inspect", "completion"} <= set(verbs())
    for verb in verbs():
        with pytest.raises(SystemExit) as exit_info:
            main([verb, "--help"])
        assert exit_info.value.code == 0
        assert "edgefl" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["dance"], ["inspect"], ["inspect", "a", "b"], ["inspect", "--loud", "a"]])
def test_wrong_usage_exits_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(words)
    assert exit_info.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: edgefl" in captured.err


def test_an_error_is_two_lines_on_stderr_and_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"schema": "edgefl.budget/1", "joule": 3}')
    assert main(["inspect", str(bad)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("edgefl: error: ")
    assert "joule" in captured.err
    assert "Traceback" not in captured.err


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / "nowhere")]) == 1
    assert "No such file or directory" in (error := capsys.readouterr().err)
    assert "nowhere" in error
    assert main(["inspect", str(tmp_path)]) == 1
    assert "has no manifest.json" in capsys.readouterr().err


def test_a_bug_is_called_a_bug(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(inspect_verb, "_show_body", broken)
    assert main(["inspect", str(GOLDEN / "mask_v1.safetensors")]) == 1
    assert "bug in EdgeFL" in (error := capsys.readouterr().err)
    assert "Traceback" not in error
    monkeypatch.setenv("EDGEFL_DEBUG", "1")
    assert main(["inspect", str(GOLDEN / "mask_v1.safetensors")]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_exits_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(inspect_verb, "_show_body", interrupted)
    assert main(["inspect", str(GOLDEN / "mask_v1.safetensors")]) == 130
    assert capsys.readouterr().err == "edgefl: error: interrupted\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_completion_knows_every_verb(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(verb in script for verb in verbs())


def test_bash_completes_verbs_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    (tmp_path / "edgefl.bash").write_text(capsys.readouterr().out)
    (tmp_path / "profile.json").touch()
    ask = """
        source ./edgefl.bash
        COMP_WORDS=({words}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); COMP_LINE="${{COMP_WORDS[*]}}"
        COMP_POINT=${{#COMP_LINE}}
        $(complete -p edgefl | sed 's/.*-F \\([^ ]*\\).*/\\1/') edgefl
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """

    def completed(words: str) -> list[str]:
        run = subprocess.run(["bash", "-c", ask.format(words=words)], capture_output=True, text=True, cwd=tmp_path)
        return run.stdout.split()

    assert completed("edgefl ins") == ["inspect"]
    assert completed("edgefl inspect prof") == ["profile.json"]
