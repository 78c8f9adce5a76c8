"""Migrates a database to the schema of this version, when a store is opened.

Several workers may start at once: the first one migrates under a lock, the others find it done. A database that a
newer version has written is left alone.
"""

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from coordinator.storage.database import Database
from coordinator.storage.sqlite_errors import RESTORE
from coordinator.storage.tables import metadata
from edgefl.errors import EdgeFLError

__all__ = ["migrate"]

# Alembic keeps the running migration in a global variable.
_ONE_AT_A_TIME = threading.Lock()


def migrate(database: Database, shown: str) -> None:
    """Run the missing steps, all or none. `shown` names the database in errors."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)

    def upgrade(connection: Connection) -> None:
        database.lock_schema(connection)
        if not _is_current(connection, scripts, shown):
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
        _check_complete(connection, shown)

    with _ONE_AT_A_TIME:
        database.write(upgrade)


def _is_current(connection: Connection, scripts: ScriptDirectory, shown: str) -> bool:
    found = MigrationContext.configure(connection).get_current_revision()
    strangers = set(inspect(connection).get_table_names()) - {"alembic_version"}
    if found is None and strangers & set(metadata.tables):
        raise EdgeFLError(
            f"the database {shown} has tables of EdgeFL, but not the version of its schema",
            fix=RESTORE,
        )
    if found is None and strangers and connection.dialect.name == "sqlite":
        raise EdgeFLError(
            f"the database {shown} is one of another program: it has the table {min(strangers)!r}",
            fix="Name another file.",
        )
    known = {step.revision for step in scripts.walk_revisions()}
    if found is not None and found not in known:
        raise EdgeFLError(
            f"the database {shown} has the schema {found!r}, which this version of EdgeFL does not know",
            fix="A newer version wrote it: install that version, or name another database.",
        )
    return found == scripts.get_current_head()


def _check_complete(connection: Connection, shown: str) -> None:
    missing = set(metadata.tables) - set(inspect(connection).get_table_names())
    if missing:
        raise EdgeFLError(f"the database {shown} lacks the tables {', '.join(sorted(missing))}", fix=RESTORE)
