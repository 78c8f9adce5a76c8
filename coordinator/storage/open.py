"""Opens the database or the blob store at a URL. Nothing else in `coordinator` knows which kind it is."""

import sqlite3
import time
from pathlib import Path

import sqlalchemy.exc
from sqlalchemy import URL

from coordinator.errors import DatabaseUnavailableError
from coordinator.storage.blobs import Blobs
from coordinator.storage.database import Database, postgresql_database, sqlite_database
from coordinator.storage.folder_blobs import FolderBlobs
from coordinator.storage.migrate import migrate
from coordinator.storage.private_files import create_private
from coordinator.storage.sqlite_errors import RESTORE, explained
from coordinator.storage.store import Store
from edgefl.errors import EdgeFLError, MissingDependencyError

__all__ = ["blobs_folder", "database_file", "open_blobs", "open_store"]

_CREATION_SECONDS = 2.0
"""How long another worker may take from creating the file of a database to writing to it."""
_DATABASE_FIX = "Write sqlite:///path/of/a/file or postgresql://user@host/database."


def open_store(url: str) -> Store:
    """Open the database at a URL, and migrate it to the schema of this version."""
    try:
        address = sqlalchemy.make_url(url)
    except sqlalchemy.exc.ArgumentError:
        raise EdgeFLError("the URL of the database cannot be read", fix=_DATABASE_FIX) from None
    shown = address.render_as_string(hide_password=True)
    database = _database(address, shown)
    try:
        migrate(database, shown)
    except DatabaseUnavailableError as error:
        database.close()
        if not database.is_postgresql:
            raise
        fix = "Check that the server runs and has a database of this name, and check the user and the password."
        raise DatabaseUnavailableError(f"the database {shown} cannot be opened: {error.problem}", fix=fix) from error
    except sqlalchemy.exc.DBAPIError as error:
        database.close()
        fix = "Its user must be allowed to create tables: preferably, make it the owner of the database."
        reason = str(error.orig).partition("\n")[0]
        raise EdgeFLError(f"the database {shown} cannot be set up: {reason}", fix=fix) from error
    except EdgeFLError:
        database.close()
        raise
    return Store(database)


def open_blobs(url_or_path: str) -> Blobs:
    """Open the blob store in a folder, or at a URL."""
    folder = blobs_folder(url_or_path)
    if folder is not None:
        try:
            return FolderBlobs(folder)
        except OSError as error:
            problem = f"the blob store {folder} cannot be opened: {error.strerror or error}"
            raise EdgeFLError(problem, fix="Name a writable folder.") from error
    from coordinator.storage.remote_blobs import RemoteBlobs

    return RemoteBlobs(url_or_path)


def blobs_folder(url_or_path: str) -> Path | None:
    """Return the folder of a blob store, or None if it is elsewhere."""
    scheme, separator, rest = url_or_path.partition("://")
    return Path(rest if separator else url_or_path) if not separator or scheme == "file" else None


def database_file(url: str) -> Path | None:
    """Return the file of an SQLite database, or None if the URL names a server or cannot be read."""
    try:
        address = sqlalchemy.make_url(url)
    except sqlalchemy.exc.ArgumentError:
        return None
    is_file = address.drivername == "sqlite" and address.database not in (None, "", ":memory:")
    return Path(str(address.database)) if is_file else None


def _database(address: URL, shown: str) -> Database:
    if address.drivername == "sqlite" and address.database not in (None, "", ":memory:"):
        path = Path(str(address.database))
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_not_emptied(path)
            create_private(path)  # SQLite gives its write-ahead log the same permissions
            return sqlite_database(path)
        except (OSError, sqlite3.Error) as error:
            fix = "Name a file in a writable folder on a local disk."
            problem = f"the database {shown} cannot be opened: {error}"
            raise explained(error, path) or EdgeFLError(problem, fix=fix) from error
    if address.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        try:
            return postgresql_database(address)
        except ImportError:
            raise MissingDependencyError("psycopg", action="a PostgreSQL database", extra="postgresql") from None
    raise EdgeFLError(f"the database {shown} is of an unknown kind", fix=_DATABASE_FIX)


def _check_not_emptied(path: Path) -> None:
    """Refuse a file of no bytes. SQLite would take it for a new database, and every federation would be gone."""
    end = time.monotonic() + _CREATION_SECONDS
    while path.is_file() and path.stat().st_size == 0:
        if time.monotonic() >= end:
            raise EdgeFLError(
                f"the database {path} is an empty file",
                fix=f"{RESTORE} If there was nothing in it, delete the file.",
            )
        time.sleep(0.05)
