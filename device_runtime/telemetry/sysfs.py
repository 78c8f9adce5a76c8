"""Reads the small files of /proc and /sys in which Linux shows its state.

All telemetry reads the system here, below a root folder, so that tests can use captured files in their own folder. A
file that is missing, forbidden, malformed or vanishes between two reads is never an error: the result is None, and the
caller does without that source.
"""

from pathlib import Path

__all__ = ["ROOT", "read_text", "read_int", "find_paths", "as_name"]

ROOT = Path("/")

_LONGEST_NAME = 200  # of `edgefl.values.Name`
_AROUND = " \t\r\n\0"  # device-tree strings end in a NUL


def read_text(path: Path) -> str | None:
    """Return the text of a file without surrounding white space, or None if it cannot be read."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content.decode("utf-8", errors="replace").strip(_AROUND)


def read_int(path: Path) -> int | None:
    """Return the whole number in a file, or None if it cannot be read or is not a number."""
    text = read_text(path)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        return None


def find_paths(root: Path, pattern: str) -> list[Path]:
    """Return what matches the pattern below the root, `hwmon2` before `hwmon10`."""
    try:
        paths = list(root.glob(pattern))
    except OSError:
        return []
    return sorted(paths, key=lambda path: (len(str(path)), str(path)))


def as_name(text: str | None) -> str | None:
    """Return the text as a valid `edgefl.values.Name`, or None if nothing is left of it."""
    printable = "".join(character if character.isprintable() else " " for character in text or "")
    return " ".join(printable.split())[:_LONGEST_NAME].strip() or None
