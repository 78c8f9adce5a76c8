"""Every command that a document prints is one: the real parser takes it, the module, option or target is there."""

import importlib.util
import re
from pathlib import Path

import pytest

from edgefl.cli.main import make_parser
from tests.documents.commands import ROOT, Command, commands_in, documents, inline_verbs
from tests.documents.reference import verbs_of

COMMANDS = [command for path in documents() for command in commands_in(path)]


def named(command: Command) -> str:
    return f"{command.document}:{command.line}:{'-'.join(command.words[:3])}"


def test_documents_have_commands() -> None:
    """Or the search for them is broken."""
    assert len([command for command in COMMANDS if command.words[0] == "edgefl"]) > 100
    assert {command.document for command in COMMANDS} >= {"README.md", "commands.md", "coordinator.md"}


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.words[0] == "edgefl"], ids=named)
def test_a_command_parses(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    code: object = 0
    try:
        make_parser().parse_args(list(command.words[1:]))
    except SystemExit as end:
        code = end.code
    assert code == 0, f"{command.document}, line {command.line}: {command.text}\n{capsys.readouterr().err}"


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.words[0] == "python"], ids=named)
def test_a_module_is_there_and_has_the_options(command: Command) -> None:
    spec = importlib.util.find_spec(command.words[2])
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    assert all(word in source for word in command.words[3:] if word.startswith("--"))


def test_modules_in_sentences_are_there() -> None:
    for path in documents():
        for module in re.findall(r"`python -m ([\w.]+)", path.read_text(encoding="utf-8")):
            assert importlib.util.find_spec(module) is not None, f"{path.name}: {module}"


def test_targets_of_make_are_there() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {command.words[1] for command in COMMANDS if command.words[0] == "make"} <= targets


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.name)
def test_verbs_in_sentences_are_verbs(document: Path) -> None:
    assert inline_verbs(document) <= set(verbs_of(make_parser()))
