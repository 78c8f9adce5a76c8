"""docs/commands.md has every verb, sub-verb and option of the real parser, with its help."""

import argparse
import re

import pytest

from edgefl.cli.main import make_parser
from tests.documents.reference import REFERENCE, reference, walk

PARSERS = [make_parser(), *(parser for parser, _ in walk(make_parser()))]


def test_the_reference_is_up_to_date() -> None:
    assert REFERENCE.read_text(encoding="utf-8") == reference(), "run: python -m tests.test_documents"


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.prog)
def test_every_option_is_documented_with_its_help(parser: argparse.ArgumentParser) -> None:
    """Looked for by itself, whatever the generator does."""
    text = REFERENCE.read_text(encoding="utf-8").replace("\\|", "|")
    title = "# The command line" if parser.prog == "edgefl" else f"# {parser.prog}\n"
    section = re.split(r"^##+ ", text.partition(title)[2], maxsplit=1, flags=re.MULTILINE)[0]
    assert section
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            continue
        assert action.help, f"{parser.prog}: {action.dest} has no help"
        choices = [] if action.choices is None else [str(choice) for choice in action.choices]
        names = action.option_strings or choices or [str(action.metavar or action.dest)]
        for name in names:
            assert re.search(rf"^\| `[^`]*{re.escape(name)}", section, re.MULTILINE), f"{parser.prog} {name}"
        assert action.help.replace("%%", "%").partition("%(")[0] in section


def test_every_verb_has_its_short_help_in_the_reference() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    for parser in PARSERS:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for choice in action._choices_actions:
                    assert re.search(
                        rf"edgefl .*{re.escape(choice.dest)}.*: {re.escape(str(choice.help))}$", text, re.MULTILINE
                    )
