"""The commands that documents print: found in code blocks, one by one, as a shell would take them apart.

A command is a line of a fenced block (`sh`, `console`, `text`, or none named) or of an indented one that begins with
`edgefl`, `python -m` or `make`. What stands after two spaces, or after `#`, is said to the reader, not to the shell.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOT", "Command", "commands_in", "documents", "inline_verbs"]

ROOT = Path(__file__).parents[2]
_SHELL = {"", "sh", "console", "text"}
_ASIDE = re.compile(r"(?<=\S)\s{2,}(?=[^-\s]).*$")
_ENDS = {"&&", "&", "|", ";", ">", ">>"}


@dataclass(frozen=True)
class Command:
    """One command of a document."""

    document: str
    line: int
    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """The command in one form, however it was written."""
        return shlex.join(self.words)


def documents() -> list[Path]:
    """Every document of the project."""
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def commands_in(path: Path) -> list[Command]:
    """Return the commands of a document, in order."""
    return [
        Command(path.name, number, tuple(words))
        for number, line in _code_lines(path.read_text(encoding="utf-8"))
        for words in _simple_commands(line)
        if words[0] in ("edgefl", "make") or words[:2] == ["python", "-m"]
    ]


def inline_verbs(path: Path) -> set[str]:
    """Return what follows `edgefl` in code within sentences, such as `edgefl plan`."""
    return set(re.findall(r"`edgefl ([a-z]+)", path.read_text(encoding="utf-8")))


def _code_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of shell code with their numbers, continued ones as one."""
    language: str | None = None
    waiting, began = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            language = line[3:].strip() if language is None else None
            continue
        is_code = language in _SHELL if language is not None else line.startswith("    ")
        if not is_code:
            waiting = ""
            continue
        began = began if waiting else number
        waiting += line.strip().removeprefix("$ ")
        if waiting.endswith("\\"):
            waiting = waiting[:-1].rstrip() + " "
            continue
        yield began, waiting
        waiting = ""


def _simple_commands(line: str) -> list[list[str]]:
    """Take a line apart: what && and ; join are several commands, what a pipe or > leads to is none of ours."""
    if not line.startswith(("edgefl ", "python -m ", "make ")):
        return []
    lexer = shlex.shlex(_ASIDE.sub("", line), posix=True, punctuation_chars="&|;>")
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    skipping = False
    for word in lexer:
        if word in _ENDS:
            skipping = word in ("|", ">", ">>")
            if not skipping:
                commands.append([])
        elif not skipping:
            commands[-1].append(word)
    return [words for words in commands if words]
