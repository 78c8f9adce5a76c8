"""Adds what an operator changes and sees while a federation runs: deadlines, plans, and what each device did last."""

import sqlalchemy as sa
from alembic import op

from coordinator.storage.tables import Word

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def _columns(*names: str) -> "list[sa.ColumnClause[str]]":
    return [sa.column(name) for name in names]


def upgrade() -> None:
    """Add the columns. No deadline has changed so far and earlier plans are unknown, but the last tasks are known."""
    op.add_column("federations", sa.Column("deadline", sa.Double))
    op.add_column("rounds", sa.Column("plan", sa.Text))
    op.add_column("tasks", sa.Column("kept_fraction", sa.Double))
    op.add_column("tasks", sa.Column("trained_fraction", sa.Double))
    op.add_column("devices", sa.Column("last_task", Word))
    op.add_column("devices", sa.Column("last_result", Word))
    devices = sa.table("devices", *_columns("id", "last_task", "last_result"))
    tasks = sa.table("tasks", *_columns("id", "device", "created_at", "state"))
    newest = sa.select(tasks.c.id).where(tasks.c.device == devices.c.id)
    newest = newest.order_by(tasks.c.created_at.desc(), tasks.c.id.desc()).limit(1)
    counted = newest.where(tasks.c.state == "done")
    op.execute(sa.update(devices).values(last_task=newest.scalar_subquery(), last_result=counted.scalar_subquery()))


def downgrade() -> None:
    """Drop the columns."""
    op.drop_column("devices", "last_result")
    op.drop_column("devices", "last_task")
    op.drop_column("tasks", "trained_fraction")
    op.drop_column("tasks", "kept_fraction")
    op.drop_column("rounds", "plan")
    op.drop_column("federations", "deadline")
