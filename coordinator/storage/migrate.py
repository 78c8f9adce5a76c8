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
from sqlalchemy import Connection

from coordinator.storage.database import Database
from edgefl.errors import EdgeFLError

__all__ = ["migrate"]

# Alembic keeps the running migration in a global variable.
_ONE_AT_A_TIME = threading.Lock()


def migrate(database: Database) -> None:
    """Run the missing steps, all or none."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)

    def upgrade(connection: Connection) -> None:
        database.lock_schema(connection)
        if _is_current(connection, scripts):
            return
        config.attributes["connection"] = connection
        command.upgrade(config, "head")

    with _ONE_AT_A_TIME:
        database.write(upgrade)


def _is_current(connection: Connection, scripts: ScriptDirectory) -> bool:
    found = MigrationContext.configure(connection).get_current_revision()
    known = {step.revision for step in scripts.walk_revisions()}
    if found is not None and found not in known:
        raise EdgeFLError(
            f"the database has the schema {found!r}, which this version of EdgeFL does not know",
            fix="A newer version wrote it: install that version, or name another database.",
        )
    return found == scripts.get_current_head()
