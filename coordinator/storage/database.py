"""Transactions on SQLite and PostgreSQL; everything that differs between the two is in this file.

There are two engines on one database. `read` runs one statement without a transaction; `look_up` does so for the few
statements that run hundreds of times a second. `write` runs a transaction that sees what is committed, and repeats it
if the database rolled it back in favour of another one.

SQLite      WAL, and a writer's lock from the first statement on (BEGIN IMMEDIATE). The writers of a process queue for
            one connection, in order; those of several processes wait for each other's lock.
PostgreSQL  READ COMMITTED. A transaction locks what it relies on, always in this order, so that no two deadlock:
            federation, round, tasks by id, join key, devices by id, programs by key, operators' tokens by id, the
            audit log.
"""

import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine, Executable, Select, Table, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionError

from coordinator.errors import DatabaseUnavailableError
from coordinator.storage.sqlite_errors import explained
from coordinator.storage.sqlite_lookups import SqliteLookups
from coordinator.storage.write_probe import OpenedFile, try_write

__all__ = ["Database", "lock_audit_log", "postgresql_database", "sqlite_database"]

Value = TypeVar("Value")

_LOCK_SECONDS = 30
_TRIES = 8
# Serialization failure, deadlock: the transaction was rolled back, and can be repeated.
_ROLLED_BACK = frozenset({"40001", "40P01"})
# Two transactions added the same row: the one that is repeated finds it.
_SAME_ROW = frozenset({"23505"})


class Database:
    """The connections to a database, and how transactions run on them."""

    def __init__(
        self, reader: Engine, writer: Engine, lookups: SqliteLookups | None = None, file: OpenedFile | None = None
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._lookups = lookups
        self._file = file
        """The file of an SQLite database."""

    @property
    def is_postgresql(self) -> bool:
        """Whether this is PostgreSQL, which several machines may share."""
        return self._writer.dialect.name == "postgresql"

    def read(self, statement: Executable, **values: object) -> list[Any]:
        """Return the rows of one statement that changes nothing."""
        for last in _attempts():
            try:
                with self._reader.connect() as connection:
                    return list(connection.execute(statement, values).all())
            except (DBAPIError, NoConnectionError) as error:
                # A connection that broke while idle is no reason to give up: the next one is new.
                if last or not getattr(error, "connection_invalidated", False):
                    raise self._explained(error) from error
        raise AssertionError("the last attempt raises")

    def look_up(self, statement: Select[Any], **values: str | int) -> list[Any]:
        """Return the rows of a statement that is built once and run often. States are returned as text."""
        if self._lookups is None:
            return self.read(statement, **values)
        try:
            return self._lookups.rows(statement, values)
        except sqlite3.Error as error:
            raise self._explained(OperationalError(None, None, error)) from error

    def write(self, work: Callable[[Connection], Value]) -> Value:
        """Run a transaction, and return what `work` returns once everything it did is durable.

        `work` may run several times, so it must change nothing but the database.
        """
        for last in _attempts():
            finished = False
            try:
                with self._writer.begin() as connection:
                    value = work(connection)
                    finished = True
                return value
            except (DBAPIError, NoConnectionError) as error:
                if last or not _may_repeat(error, finished):
                    raise self._explained(error) from error
        raise AssertionError("the last attempt raises")

    def check_files(self) -> None:
        """Raise `OSError` if the file of an SQLite database is gone, or its disk is full."""
        if self._file is not None:
            self._file.check()
            try_write(self._file.path.parent)

    def _explained(self, error: SQLAlchemyError) -> Exception:
        """Return what to raise: the state of a database is for its operator, any other error is a bug of ours."""
        found = None if self._file is None else explained(getattr(error, "orig", None), self._file.path)
        return found or _unavailable(error)

    def insert(self, table: Table) -> "postgresql.Insert | sqlite.Insert":
        """Return an INSERT that supports ON CONFLICT: both databases spell it the same, SQLAlchemy does not."""
        return postgresql.insert(table) if self.is_postgresql else sqlite.insert(table)

    def lock_schema(self, connection: Connection) -> None:
        """Wait until nobody else changes the schema; SQLite has one writer at a time anyway."""
        if self.is_postgresql:
            connection.execute(text("SELECT pg_advisory_xact_lock(5021930157)"))  # any number of our own

    def lock_models(self, connection: Connection) -> None:
        """Let nobody else drop models, or name one that is stored; SQLite has one writer at a time anyway."""
        if self.is_postgresql:
            connection.execute(text("SELECT pg_advisory_xact_lock(5021930158)"))

    def close(self) -> None:
        """Close all connections."""
        if self._lookups is not None:
            self._lookups.close()
        self._reader.dispose()
        self._writer.dispose()


def lock_audit_log(connection: Connection) -> None:
    """Wait until no other transaction adds to the audit log: each entry names the one before it."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(5021930158)"))


def sqlite_database(path: Path) -> Database:
    """Open an SQLite file, and create it if it is missing."""
    url = URL.create("sqlite", database=str(path))
    arguments = {"timeout": _LOCK_SECONDS}
    reader = create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        pool_size=16,
        max_overflow=48,
        pool_reset_on_return=None,
        connect_args=arguments,
    )
    writer = create_engine(url, pool_size=1, max_overflow=0, pool_timeout=_LOCK_SECONDS, connect_args=arguments)

    def prepare(connection: DBAPIConnection, _: object) -> None:
        connection.isolation_level = None  # we begin transactions, not the driver
        connection.execute("PRAGMA synchronous = FULL")  # in WAL, NORMAL may lose the last commits
        connection.execute("PRAGMA foreign_keys = ON")

    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    event.listen(reader, "connect", prepare)
    event.listen(writer, "connect", prepare)
    event.listen(writer, "begin", begin)
    _use_wal(writer)
    return Database(reader, writer, SqliteLookups(path, seconds=_LOCK_SECONDS), OpenedFile.at(path))


def postgresql_database(url: URL) -> Database:
    """Open a database on a server."""
    url = url.set(drivername="postgresql+psycopg")
    arguments = {"connect_timeout": 10, "application_name": "edgefl"}
    for name in [name for name in arguments if name in url.query]:
        del arguments[name]

    def engine(level: Any, reset: Any) -> Engine:
        made = create_engine(
            url, isolation_level=level, pool_size=8, max_overflow=24, pool_reset_on_return=reset, connect_args=arguments
        )
        event.listen(made, "connect", _set_limits)
        return made

    return Database(engine("AUTOCOMMIT", None), engine("READ COMMITTED", "rollback"))


def _set_limits(connection: DBAPIConnection, _: object) -> None:
    """Set timeouts, so that a worker whose machine dies in a transaction holds its locks for seconds, not for hours."""
    settings = {"lock_timeout": _LOCK_SECONDS, "idle_in_transaction_session_timeout": _LOCK_SECONDS}
    cursor = connection.cursor()
    for name, seconds in settings.items():
        cursor.execute(f"SET {name} = '{seconds}s'")
    cursor.close()
    if not connection.autocommit:
        connection.commit()


def _use_wal(writer: Engine) -> None:
    """Switch to a write-ahead log, once for each file; if two workers do so at the same time, one must try again."""
    for last in _attempts():
        connection = writer.raw_connection()
        try:
            connection.cursor().execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if last or error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
        finally:
            connection.close()


def _attempts() -> Iterator[bool]:
    """Count attempts, with a pause between them; give True for the last one."""
    for attempt in range(1, _TRIES + 1):
        yield attempt == _TRIES
        time.sleep(random.uniform(0, 0.005 * 2**attempt))  # so that two workers that collided do not collide again


def _may_repeat(error: SQLAlchemyError, finished: bool) -> bool:
    """Return whether a transaction certainly did nothing, and may succeed the next time."""
    if not isinstance(error, DBAPIError):
        return False
    state = getattr(error.orig, "sqlstate", None)
    if state in _ROLLED_BACK or state in _SAME_ROW:
        return True
    # A connection that broke during the commit may have committed.
    return error.connection_invalidated and not finished


def _unavailable(error: SQLAlchemyError) -> Exception:
    """Return the error of a database that does not answer; any other error as it is."""
    if not isinstance(error, (OperationalError, InterfaceError, NoConnectionError)):
        return error
    reason = " ".join(str(getattr(error, "orig", error)).split())[:300]
    return DatabaseUnavailableError(
        f"the database does not answer: {reason}", fix="Check that it runs and that its disk has space."
    )
