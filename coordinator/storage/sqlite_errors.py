"""What an error of SQLite means for an operator: which file, what is wrong with it, and what to do."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from coordinator.errors import DatabaseUnavailableError

__all__ = ["RESTORE", "explained", "explaining"]

RESTORE = "Stop the coordinator and restore its storage from a backup: docs/operations.md, 'Backup and restore'."
_DAMAGED = ("is damaged", RESTORE)
_DENIED = (
    "cannot be written to",
    "Make the file and its folder writable for the user who runs the coordinator, on a disk that is not read-only.",
)
_LOCKED = (
    "is locked by another process",
    "End what holds it (a backup, an editor, a coordinator that does not stop), or wait and try again.",
)
_MEANINGS = {
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: ("is damaged, or another kind of file", RESTORE),
    sqlite3.SQLITE_READONLY: _DENIED,
    sqlite3.SQLITE_PERM: _DENIED,
    sqlite3.SQLITE_AUTH: _DENIED,
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_FULL: ("has no space left", "Make room on its disk."),
    sqlite3.SQLITE_IOERR: ("cannot be read or written", "Check its disk, and that the file still exists."),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "Name a file in a writable folder on a local disk."),
    sqlite3.SQLITE_NOMEM: ("cannot be read or written", "Give the coordinator more memory."),
}
_INCOMPLETE = ("no such table", "no such column", "no such index")


def explained(error: BaseException | None, path: Path | str) -> DatabaseUnavailableError | None:
    """Return an error that names the file and what to do; None if SQLite is not to blame, but our use of it."""
    if not isinstance(error, sqlite3.Error):
        return None
    text = " ".join(str(error).split())[:300]
    code = getattr(error, "sqlite_errorcode", None)
    meaning = None if code is None else _MEANINGS.get(code & 0xFF)  # the upper bits say more about the same
    if meaning is None and any(sign in text for sign in _INCOMPLETE):
        meaning = ("is incomplete", RESTORE)
    if meaning is None:
        return None
    problem, fix = meaning
    return DatabaseUnavailableError(f"the database {path} {problem}: {text}", fix=fix)


@contextlib.contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Raise errors of SQLite as ones that name the file."""
    try:
        yield
    except sqlite3.Error as error:
        raise explained(error, path) or error from error
