"""docs/commands.md, written from the parser: every verb, every option, each with its help text.

`python -m tests.test_documents` writes the file anew; a test says when that is due.
"""

import argparse
from collections.abc import Iterator

from edgefl.cli.main import make_parser
from tests.documents.commands import ROOT

__all__ = ["REFERENCE", "options_of", "reference", "verbs_of", "walk"]

REFERENCE = ROOT / "docs" / "commands.md"

_HEAD = """\
# The command line

<!-- This file is written by `python -m tests.test_documents` from the parser itself. Do not edit it by hand. -->

Every verb of `edgefl`, with every option. `edgefl VERB --help` shows the same in a terminal.

- Results go to standard output, progress and logs to standard error. `--json` makes the result JSON.
- Exit code 0 is success, 1 an error that EdgeFL explains, 2 wrong usage, 130 an interruption by Ctrl-C (of `join` and
  `serve`, which are meant to be stopped, 0).
- `EDGEFL_DEBUG=1` in the environment shows tracebacks.
- Other environment variables: `EDGEFL_DATA` (folder of data sets, `~/edgefl-data` by default), `EDGEFL_URL` and
  `EDGEFL_ADMIN_TOKEN` (a coordinator and its operator's secret), `EDGEFL_VIEWER_TOKEN` (the secret of who may only
  look), `EDGEFL_JOIN_KEY` (a device's key), `EDGEFL_DATABASE` (the coordinator's database).
- `-h` and `--help` are there everywhere and are left out below.
"""


def verbs_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the verbs of a parser with their parsers; none where it has none."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def options_of(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    """Return every option and argument of a parser, as written, with its help."""
    found = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
            continue
        found.append((_written(action), _help(parser, action)))
    return found


def reference() -> str:
    """Return the whole document."""
    parser = make_parser()
    lines = [_HEAD, *_table(options_of(parser)), ""]
    lines += [f"- [edgefl {verb}](#edgefl-{verb}): {_short(parser, verb)}" for verb in verbs_of(parser)]
    for one, level in walk(parser):
        lines += ["", f"{'#' * level} {one.prog}", "", *_paragraph(one.description), *_table(options_of(one))]
        lines += (
            ["", *[f"- `{one.prog} {verb}`: {_short(one, verb)}" for verb in verbs_of(one)]] if verbs_of(one) else []
        )
        if one.epilog and one.epilog != _parent_epilog(parser, one):
            lines += ["", "```text", one.epilog.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def walk(parser: argparse.ArgumentParser, level: int = 2) -> Iterator[tuple[argparse.ArgumentParser, int]]:
    """Yield every verb and sub-verb, in order, with how deep it is."""
    for one in verbs_of(parser).values():
        yield one, level
        yield from walk(one, level + 1)


def _parent_epilog(parser: argparse.ArgumentParser, one: argparse.ArgumentParser) -> str | None:
    """Return the epilog of the verb that a sub-verb belongs to: it may have the same."""
    words = one.prog.split()[1:-1]
    return verbs_of(parser)[words[0]].epilog if words else None


def _short(parser: argparse.ArgumentParser, verb: str) -> str:
    (action,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    (help_text,) = (choice.help for choice in action._choices_actions if choice.dest == verb)
    return str(help_text)


def _paragraph(text: str | None) -> list[str]:
    return [text.rstrip(), ""] if text else []


def _table(options: list[tuple[str, str]]) -> list[str]:
    if not options:
        return []
    rows = [f"| `{_cell(option)}` | {_cell(text)} |" for option, text in options]
    return ["| option | what it does |", "| --- | --- |", *rows]


def _written(action: argparse.Action) -> str:
    value = _value(action)
    if not action.option_strings:
        return {"?": f"[{value}]", "*": f"[{value} ...]", "+": f"{value} [{value} ...]"}.get(str(action.nargs), value)
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {value}"


def _value(action: argparse.Action) -> str:
    if action.choices is not None and action.metavar is None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return str(action.metavar or action.dest.upper())


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    return parser._get_formatter()._expand_help(action)


def _cell(text: str) -> str:
    """Return a text for a table, whose columns are divided by bars."""
    return text.replace("|", "\\|")
