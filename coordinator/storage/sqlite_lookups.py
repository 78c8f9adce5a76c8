"""Fast lookups by key in an SQLite file, without SQLAlchemy, which takes several times as long as the database itself.

`Database.look_up` uses it for the few statements of every poll and every upload. The text of a statement still comes
from SQLAlchemy, and so do the names and types of the tables.
"""

import sqlite3
import threading
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy import Select
from sqlalchemy.dialects import sqlite

__all__ = ["SqliteLookups"]

_Compiled = tuple[str, list[str], dict[str, object]]


class SqliteLookups:
    """Compiled statements, and a connection for each thread: readers do not wait."""

    def __init__(self, path: Path, *, seconds: float) -> None:
        self._path, self._seconds = path, seconds
        self._compiled: dict[Select[Any], _Compiled] = {}
        self._local = threading.local()
        self._lock = threading.Lock()
        self._connections: list[sqlite3.Connection] = []

    def rows(self, statement: Select[Any], values: Mapping[str, str | int]) -> list[Any]:
        """Return the rows of a statement, as SQLite returns them."""
        compiled = self._compiled.get(statement)
        if compiled is None:
            compiled = self._compiled[statement] = _compile(statement)
        text, names, fixed = compiled
        arguments = [_plain(values[name] if name in values else fixed[name]) for name in names]
        return self._connection().execute(text, arguments).fetchall()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            for connection in self._connections:
                connection.close()

    def _connection(self) -> sqlite3.Connection:
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = sqlite3.connect(self._path, timeout=self._seconds, isolation_level=None, check_same_thread=False)
            self._local.connection = found
            with self._lock:
                self._connections.append(found)
        return found


def _compile(statement: Select[Any]) -> _Compiled:
    compiled = statement.compile(dialect=sqlite.dialect())
    return str(compiled), list(compiled.positiontup or ()), dict(compiled.params)


def _plain(value: object) -> object:
    """Return a value that the driver accepts. Ids come from URLs: characters that no database can hold are replaced."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, str) and not value.isascii():
        return value.encode(errors="replace").decode()
    return value
