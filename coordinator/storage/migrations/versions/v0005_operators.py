"""Adds the operators' named tokens and the audit log, which nobody can change or shorten.

The hashes of the tokens that coordinators were started with move from `secrets`, which held nothing else.
"""

import time

import sqlalchemy as sa
from alembic import op

from coordinator.storage.tables import Word

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_REFUSAL = "the audit log is append-only"
# SQLite's INSERT OR REPLACE deletes a row without asking the trigger for DELETE, so numbers must grow.
_SQLITE = (
    f"CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
    f"CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
    "CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit "
    "WHEN NEW.number <= (SELECT max(number) FROM audit) "
    f"BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
)
_POSTGRESQL = (
    "CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$",
    "CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON audit "
    "FOR EACH ROW EXECUTE FUNCTION audit_is_append_only()",
    "CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit "
    "FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only()",
)


def upgrade() -> None:
    """Create the tables and the triggers, and keep the tokens that are known."""
    _tokens()
    _audit()
    secrets = sa.table("secrets", sa.column("name"), sa.column("value"))
    names = ["name", "id", "role", "hash", "created_at", "from_start"]
    tokens = sa.table("tokens", *(sa.column(name) for name in names))
    for role in ("admin", "viewer"):
        values = [sa.literal(role), sa.literal(f"first-{role}"), sa.literal(role), secrets.c.value]
        values += [sa.literal(time.time()), sa.literal(True)]
        known = sa.select(*values).where(secrets.c.name == f"{role}-token")
        op.execute(sa.insert(tokens).from_select(names, known))
    op.drop_table("secrets")


def downgrade() -> None:
    """Drop everything that was added."""
    op.drop_table("audit")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION audit_is_append_only()")
    op.drop_table("tokens")
    op.create_table("secrets", sa.Column("name", Word, primary_key=True), sa.Column("value", sa.Text, nullable=False))


def _tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", Word, primary_key=True),
        sa.Column("name", Word, nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("hash", Word, nullable=False, unique=True),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("from_start", sa.Boolean, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("used_at", sa.Double),
        sa.Column("revoked_at", sa.Double),
    )
    valid = sa.text("revoked_at IS NULL")
    op.create_index("one_token_a_name", "tokens", ["name"], unique=True, sqlite_where=valid, postgresql_where=valid)


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("count", sa.BigInteger, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("hash", Word, nullable=False),
    )
    op.create_index("ix_audit_at", "audit", ["at"])
    for statement in _POSTGRESQL if op.get_bind().dialect.name == "postgresql" else _SQLITE:
        op.execute(statement)
