"""From a URL in the settings to a database or a blob store that is ready. Nothing else in `coordinator` knows which."""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from coordinator.storage.blobs import Blobs
from coordinator.storage.folder_blobs import FolderBlobs
from coordinator.storage.store import Store, UnavailableError
from edgefl.errors import EdgeFLError, MissingDependencyError

if TYPE_CHECKING:
    from sqlalchemy import URL

    from coordinator.storage.database import Database

__all__ = ["open_blobs", "open_store"]

_STORES = "Write sqlite:///path/of/a/file or postgresql://user@host/database."


def open_store(url: str) -> Store:
    """Open the database at a URL, and bring it to the form that this version knows."""
    try:
        import sqlalchemy.exc

        from coordinator.storage.migrate import migrate
        from coordinator.storage.sql_store import SqlStore
    except ModuleNotFoundError as error:
        raise MissingDependencyError(error.name or "sqlalchemy", action="the database", extra="coordinator") from None
    try:
        address = sqlalchemy.make_url(url)
    except sqlalchemy.exc.ArgumentError:
        raise EdgeFLError("the database has a URL that cannot be read", fix=_STORES) from None
    shown = address.render_as_string(hide_password=True)
    database = _database(address, shown)
    try:
        migrate(database)
    except UnavailableError as error:
        database.close()
        fix = "See that it runs and has a database of this name, and check the user and the password."
        raise UnavailableError(f"the database {shown} cannot be opened: {error.problem}", fix=fix) from error
    except sqlalchemy.exc.DBAPIError as error:
        database.close()
        fix = "Its user must be allowed to make tables: best, it owns the database."
        reason = str(error.orig).partition("\n")[0]
        raise EdgeFLError(f"the database {shown} cannot be set up: {reason}", fix=fix) from error
    except EdgeFLError:
        database.close()
        raise
    return SqlStore(database)


def open_blobs(url_or_path: str) -> Blobs:
    """Open the blob store in a folder, or at a URL."""
    scheme, separator, rest = url_or_path.partition("://")
    if not separator or scheme == "file":
        folder = Path(rest if separator else url_or_path)
        try:
            return FolderBlobs(folder)
        except OSError as error:
            problem = f"the blob store {folder} cannot be opened: {error.strerror or error}"
            raise EdgeFLError(problem, fix="Name a folder that can be written to.") from error
    from coordinator.storage.remote_blobs import RemoteBlobs

    return RemoteBlobs(url_or_path)


def _database(address: "URL", shown: str) -> "Database":
    from coordinator.storage.database import postgresql_database, sqlite_database

    if address.drivername == "sqlite" and address.database not in (None, "", ":memory:"):
        path = Path(str(address.database))
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return sqlite_database(path)
        except (OSError, sqlite3.Error) as error:
            fix = "Name a file in a folder that can be written to, on a disk of this machine."
            raise EdgeFLError(f"the database {shown} cannot be opened: {error}", fix=fix) from error
    if address.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        try:
            return postgresql_database(address)
        except ImportError:
            raise MissingDependencyError("psycopg", action="a PostgreSQL database", extra="postgresql") from None
    raise EdgeFLError(f"the database {shown} is of a kind that is not known", fix=_STORES)
