"""Finds the line of every key in a TOML text, for errors about a federation file.

`tomllib` gives values without their positions. This walks over a text that `tomllib` has accepted, so it checks
nothing: it only has to know where a key, a text, an array or a table ends. If it ever loses its way, it returns the
lines found so far; an error without a line is still useful.
"""

import bisect
import contextlib
import re
import tomllib
from collections.abc import Mapping

__all__ = ["Path", "line_of", "lines_of"]

Path = tuple[str | int, ...]
"""From the outermost table inwards: names of keys, and numbers of array items from 0."""

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_TEXT = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'  # up to two quotes may come right before the closing three
    r"|'''.*?'''(?:'{0,2})"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_PLAIN = re.compile(r"[^,\]}#\n]+")
_PART = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\\n])*"|'[^'\n]*')"""
_KEY = re.compile(rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*")


def lines_of(text: str) -> Mapping[Path, int]:
    """Return the line, from 1, of every key, table and array item of a valid TOML text."""
    walk = _Walk(text.replace("\r\n", "\n"))
    with contextlib.suppress(_LostError, RecursionError):
        walk.document()
    return walk.lines


def line_of(path: Path, lines: Mapping[Path, int]) -> int | None:
    """Return the line of a key or, where the text has no such key, of the innermost table that it belongs to."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


class _LostError(Exception):
    """Raised if the text is not valid TOML, or uses syntax newer than this file."""


class _Walk:
    """One walk over a text, from start to end."""

    def __init__(self, text: str) -> None:
        self.lines: dict[Path, int] = {}
        self._text = text
        self._at = 0
        self._line_ends = [match.start() for match in re.finditer("\n", text)]
        self._last_item: dict[Path, int] = {}
        """The number of the latest table of every array of tables: `[a.b]` after `[[a]]` belongs to that one."""

    def document(self) -> None:
        """Walk over all statements."""
        table: Path = ()
        while self._next():
            line = self._line()
            if self._take("[["):
                table = self._new_item(self._key(), line)
                self._expect("]]")
            elif self._take("["):
                table = self._latest(self._key())
                self._note(table, line)
                self._expect("]")
            else:
                self._pair(table)

    def _new_item(self, key: Path, line: int) -> Path:
        array = (*self._latest(key[:-1]), key[-1])
        number = self._last_item[array] = self._last_item.get(array, -1) + 1
        self._note((*array, number), line)
        return (*array, number)

    def _latest(self, key: Path) -> Path:
        path: Path = ()
        for part in key:
            path = (*path, part)
            if path in self._last_item:
                path = (*path, self._last_item[path])
        return path

    def _pair(self, table: Path) -> None:
        line = self._line()
        path = (*table, *self._key())
        self._note(path, line)
        self._expect("=")
        self._next()
        self._value(path)

    def _value(self, path: Path) -> None:
        if self._take("["):
            number = 0
            while not self._closed("]"):
                self._note((*path, number), self._line())
                self._value((*path, number))
                number += 1
        elif self._take("{"):
            while not self._closed("}"):
                self._pair(path)
        elif self._text.startswith(('"', "'"), self._at):
            self._match(_TEXT)
        else:
            self._match(_PLAIN)

    def _closed(self, bracket: str) -> bool:
        """Skip a comma before the next item; return whether the closing bracket follows instead."""
        while self._next() and self._take(","):
            pass
        return self._take(bracket)

    def _key(self) -> Path:
        self._next()
        try:
            names: object = tomllib.loads(self._match(_KEY) + " = 0")  # it handles quotes and escapes
        except tomllib.TOMLDecodeError:
            raise _LostError from None
        path: Path = ()
        while isinstance(names, dict):
            ((name, names),) = names.items()
            path = (*path, name)
        return path

    def _note(self, path: Path, line: int) -> None:
        """Note the first line of a path, and of the tables that it creates."""
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _next(self) -> bool:
        """Skip blanks, line ends and comments; return whether anything is left."""
        self._match(_BLANK)
        return self._at < len(self._text)

    def _expect(self, word: str) -> None:
        self._next()
        if not self._take(word):
            raise _LostError

    def _take(self, word: str) -> bool:
        found = self._text.startswith(word, self._at)
        self._at += len(word) if found else 0
        return found

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise _LostError
        self._at = match.end()
        return match[0]

    def _line(self) -> int:
        return bisect.bisect_left(self._line_ends, self._at) + 1
