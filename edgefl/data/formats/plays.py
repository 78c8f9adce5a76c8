"""Plain texts of plays: the speeches of each role.

A speaker is a heading on its own line, after an empty line (or at the start), that ends in ':' or '.'. The speech
follows, up to the next heading:

    First Citizen:                 HAMLET.
    Before we proceed any further  To be, or not to be, that is the question:

A heading that ends in '.' must be in capitals, since many speeches are one short sentence. Lines in brackets, headings
of acts and scenes, and everything before the first speaker are left out.
"""

import re
from pathlib import Path

from edgefl.data.archives import damaged, read_file

__all__ = ["speeches", "read_play"]

LONGEST_NAME = 40

_END_OF_EBOOK = "*** END OF"  # Project Gutenberg puts its licence after this line

_NAME_WITH_COLON = re.compile(r"[A-Z][\w'\u2019.\-]*(?: (?:of|the|and|to|in|[A-Z0-9][\w'\u2019.\-]*))*")
_NAME_WITH_FULL_STOP = re.compile(r"[A-Z][A-Z0-9'\u2019\-]*(?:[ ,]+[A-Z0-9][A-Z0-9'\u2019\-]*)*")
_ACT_OR_SCENE = re.compile(r"(?:ACT|SCENE|Act|Scene)\s+(?:[IVXLC]+|\d+)\b|[IVXLC]+\.?$")


def _speaker(line: str) -> str | None:
    name, end = line[:-1].strip(), line[-1:]
    if not name or len(name) > LONGEST_NAME or _ACT_OR_SCENE.match(name):
        return None
    pattern = {":": _NAME_WITH_COLON, ".": _NAME_WITH_FULL_STOP}.get(end)
    return name if pattern is not None and pattern.fullmatch(name) else None


def speeches(text: str) -> dict[str, str]:
    """Return the text of each role, its speeches joined by line breaks, in order of first appearance."""
    said: dict[str, list[str]] = {}
    current: list[str] | None = None
    after_empty_line = True
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith(_END_OF_EBOOK):
            break
        speaker = _speaker(line) if after_empty_line and line else None
        after_empty_line = not line
        if speaker is not None:
            current = said.setdefault(speaker, [])
        elif current is not None and line and not _is_direction(line):
            current.append(line)
    return {role: "\n".join(lines) for role, lines in said.items() if lines}


def _is_direction(line: str) -> bool:
    return _ACT_OR_SCENE.match(line) is not None or (line[0] == "[" and line[-1] == "]")


def read_play(path: Path) -> dict[str, str]:
    """Return the text of each role in a file."""
    try:
        text = read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise damaged(path, f"it is not UTF-8 text ({error.reason} at byte {error.start})") from error
    roles = speeches(text)
    if not roles:
        raise damaged(path, "no speaker found; a speaker is on its own line, which ends in ':' or '.'")
    return roles
