"""The first schema: federations, rounds, tasks, devices, join keys, artifacts, leases and secrets."""

from typing import Any

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_WORD = sa.String().with_variant(sa.String(collation="C"), "postgresql")
_STATE = sa.String(length=16)
_KEPT: dict[str, Any] = {"sqlite_where": sa.text("body_kept = 1"), "postgresql_where": sa.text("body_kept")}
_OPEN: dict[str, Any] = {"sqlite_where": sa.text("state = 'open'"), "postgresql_where": sa.text("state = 'open'")}


def upgrade() -> None:
    """Create the tables, starting with those that others refer to."""
    _federations_and_rounds()
    _keys_and_devices()
    _tasks()
    _artifacts()
    _workers()


def downgrade() -> None:
    """Drop everything."""
    for table in ("secrets", "leases", "artifacts", "tasks", "devices", "keys", "rounds", "federations"):
        op.drop_table(table)


def _federations_and_rounds() -> None:
    op.create_table(
        "federations",
        sa.Column("id", _WORD, primary_key=True),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("manifest", sa.Text, nullable=False),
        sa.Column("bundle", _WORD, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("state", _STATE, nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("changed_at", sa.Double),
    )
    op.create_table(
        "rounds",
        sa.Column("federation", _WORD, sa.ForeignKey("federations.id"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("model", _WORD, nullable=False),
        sa.Column("state_arrays", _WORD),
        sa.Column("state", _STATE, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("opened_at", sa.Double, nullable=False),
        sa.Column("deadline_at", sa.Double, nullable=False),
        sa.Column("closed_at", sa.Double),
        sa.Column("closed_because", sa.Text),
        sa.Column("done_at", sa.Double),
        sa.Column("next_model", _WORD),
        sa.Column("next_state_arrays", _WORD),
        sa.Column("report", sa.Text),
    )
    op.create_index("one_open_round", "rounds", ["federation"], unique=True, **_OPEN)


def _keys_and_devices() -> None:
    op.create_table(
        "keys",
        sa.Column("id", _WORD, primary_key=True),
        sa.Column("federation", _WORD, sa.ForeignKey("federations.id"), nullable=False),
        sa.Column("hash", _WORD, nullable=False, unique=True),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("most_uses", sa.BigInteger),
        sa.Column("uses", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("revoked_at", sa.Double),
    )
    op.create_index("ix_keys_federation", "keys", ["federation"])
    op.create_table(
        "devices",
        sa.Column("id", _WORD, primary_key=True),
        sa.Column("federation", _WORD, sa.ForeignKey("federations.id"), nullable=False),
        sa.Column("enrolment_id", _WORD, nullable=False),
        sa.Column("token_hash", _WORD, nullable=False, unique=True),
        sa.Column("key", _WORD, sa.ForeignKey("keys.id"), nullable=False),
        sa.Column("profile", sa.Text, nullable=False),
        sa.Column("software", sa.Text, nullable=False),
        sa.Column("enrolled_at", sa.Double, nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.Column("revoked_at", sa.Double),
        sa.Column("done", sa.BigInteger, nullable=False),
        sa.Column("failed", sa.BigInteger, nullable=False),
        sa.Column("samples", sa.BigInteger),
        sa.Column("mask_body", _WORD),
    )
    op.create_index("devices_of_federation", "devices", ["federation", "id"])
    op.create_index("one_device_an_enrolment", "devices", ["federation", "enrolment_id"], unique=True)


def _tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("id", _WORD, primary_key=True),
        sa.Column("federation", _WORD, nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("device", _WORD, sa.ForeignKey("devices.id"), nullable=False),
        sa.Column("plan", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("state", _STATE, nullable=False),
        sa.Column("handed_at", sa.Double),
        sa.Column("ended_at", sa.Double),
        sa.Column("counted_in", sa.Integer),
        sa.Column("update", _WORD),
        sa.Column("result", sa.Text),
        sa.Column("next_mask", _WORD),
        sa.Column("refusal", sa.Text),
        sa.Column("body_kept", sa.Boolean, nullable=False),
        sa.ForeignKeyConstraint(["federation", "round"], ["rounds.federation", "rounds.number"]),
    )
    op.create_index("tasks_of_round", "tasks", ["federation", "round", "state"])
    op.create_index("tasks_in_state", "tasks", ["federation", "state"])
    op.create_index("tasks_of_device", "tasks", ["device", "state"])
    op.create_index("tasks_counted", "tasks", ["federation", "counted_in"])
    op.create_index("updates_of_round", "tasks", ["federation", "counted_in"], **_KEPT)
    op.create_index("kept_updates", "tasks", ["update"], **_KEPT)


def _artifacts() -> None:
    op.create_table(
        "artifacts",
        sa.Column("federation", _WORD, sa.ForeignKey("federations.id"), primary_key=True),
        sa.Column("digest", _WORD, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("round", sa.Integer),
    )
    op.create_index("artifacts_by_digest", "artifacts", ["digest"])
    op.create_index("artifacts_of_round", "artifacts", ["federation", "round"])


def _workers() -> None:
    op.create_table(
        "leases",
        sa.Column("name", _WORD, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("until", sa.Double, nullable=False),
    )
    op.create_table(
        "secrets",
        sa.Column("name", _WORD, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
