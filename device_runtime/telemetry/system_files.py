"""Reading the small files in which a Linux system shows its state.

Everything in this room that looks at the system does it here, below a root folder, so that tests lay captured files
in a folder of their own. A file that is missing, forbidden, odd or gone between two reads is never an error: the
answer is None, and whoever asked does without that source.
"""

from pathlib import Path

__all__ = ["ROOT", "text_of", "number_of", "found", "as_name"]

ROOT = Path("/")

_LONGEST_NAME = 200  # of `edgefl.values.Name`
_AROUND = " \t\r\n\0"  # device-tree texts end in a NUL


def text_of(path: Path) -> str | None:
    """What the file says, without the white space around it, or None if it cannot be read."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content.decode("utf-8", errors="replace").strip(_AROUND)


def number_of(path: Path) -> int | None:
    """The whole number that the file holds, or None if it cannot be read or is none."""
    text = text_of(path)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return None


def found(root: Path, pattern: str) -> list[Path]:
    """What matches the pattern below the root, `hwmon2` before `hwmon10`."""
    try:
        paths = list(root.glob(pattern))
    except OSError:
        return []
    return sorted(paths, key=lambda path: (len(str(path)), str(path)))


def as_name(text: str | None) -> str | None:
    """The text in the form of an `edgefl.values.Name`, or None if nothing is left of it."""
    printable = "".join(character if character.isprintable() else " " for character in text or "")
    return " ".join(printable.split())[:_LONGEST_NAME].strip() or None
