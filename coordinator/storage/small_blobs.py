"""Small bodies of a blob folder, together in one SQLite file.

A separate file costs half a dozen system calls and a wait for the disk; a round of a thousand small updates would
spend most of its time on that. Here a batch of bodies is one transaction, and one wait. Several processes may share
the file. Bodies can be dropped one by one; their space is used again.
"""

import contextlib
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from coordinator.storage.sqlite_errors import explaining
from coordinator.storage.write_probe import OpenedFile

__all__ = ["SmallBodies"]

_LOCK_SECONDS = 30.0
_PAGE_BYTES = 16 * 1024
"""Bodies are larger than the default page, and a chain of many pages takes twice as long to write and to drop."""

_PROBE = "probe"
"""Where a check writes. No digest has this name."""


class SmallBodies:
    """Bodies by the digits of their digests."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._local = threading.local()
        self._readers: list[sqlite3.Connection] = []
        with explaining(path):
            self._writer = self._connect()
            self._writer.execute(f"PRAGMA page_size = {_PAGE_BYTES}")  # for a new file; an old one keeps its page size
            self._writer.execute("PRAGMA journal_mode = WAL")
            self._writer.execute("PRAGMA synchronous = FULL")
            self._writer.execute("CREATE TABLE IF NOT EXISTS bodies (name TEXT PRIMARY KEY, data BLOB NOT NULL)")
        self._file = OpenedFile.at(path)

    def put_all(self, bodies: Mapping[str, bytes]) -> None:
        """Store bodies; they are on the disk when this returns. An existing one is written again."""
        if not bodies:
            return
        with self._writing() as connection:
            connection.executemany("INSERT OR REPLACE INTO bodies VALUES (?, ?)", bodies.items())

    def get(self, name: str) -> bytes | None:
        """Return a body, or None."""
        row = self._row("SELECT data FROM bodies WHERE name = ?", name)
        return None if row is None else row[0]

    def size(self, name: str) -> int | None:
        """Return how many bytes a body has, or None."""
        row = self._row("SELECT length(data) FROM bodies WHERE name = ?", name)
        return None if row is None else row[0]

    def drop_all(self, names: Collection[str]) -> None:
        """Delete those of these bodies that are here."""
        present = [(name,) for name in names if self.size(name) is not None]
        if present:
            with self._writing() as connection:
                connection.executemany("DELETE FROM bodies WHERE name = ?", present)

    def check_writable(self) -> None:
        """Store a body that nobody reads. Raise an error if that fails, or if the file is no longer at its path."""
        self._file.check()
        self.put_all({_PROBE: b""})

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            for connection in [*self._readers, self._writer]:
                connection.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, explaining(self._path):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                yield self._writer
                self._writer.execute("COMMIT")
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise

    def _row(self, query: str, name: str) -> Any:
        with explaining(self._path):
            return self._reader().execute(query, (name,)).fetchone()

    def _reader(self) -> sqlite3.Connection:
        """Return this thread's own connection: readers do not wait."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None:
            found = self._local.connection = self._connect()
            with self._lock:
                self._readers.append(found)
        return found

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=_LOCK_SECONDS, isolation_level=None, check_same_thread=False)
