import pytest

from device_runtime.telemetry import system_commands


def test_a_command_gives_what_it_printed() -> None:
    assert system_commands.run(("printf", "throttled=0x0\\n")) == "throttled=0x0\n"


def test_a_command_that_is_not_there_or_fails_gives_none() -> None:
    assert system_commands.run(("no-such-command-here",)) is None
    assert system_commands.run(("sh", "-c", "echo half; exit 3")) is None


def test_a_command_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_commands, "_LONGEST_SECONDS", 0.05)
    assert system_commands.run(("sleep", "60")) is None


def test_output_that_is_no_text_does_no_harm() -> None:
    assert system_commands.run(("printf", "\\377ok")) == "\ufffdok"
