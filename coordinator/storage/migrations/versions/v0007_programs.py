"""Adds the programs of federations, compiled or wanted, and the rung of a task."""

import sqlalchemy as sa
from alembic import op

from coordinator.storage.tables import Word

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table and the column. Tasks so far ran ONNX graphs."""
    op.add_column("tasks", sa.Column("rung", sa.Text))
    op.create_table(
        "programs",
        sa.Column("federation", Word, sa.ForeignKey("federations.id"), primary_key=True),
        sa.Column("key", Word, primary_key=True),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("wanted_at", sa.Double, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.Column("demand", sa.BigInteger, nullable=False),
        sa.Column("takes", sa.BigInteger, nullable=False),
        sa.Column("tries", sa.BigInteger, nullable=False),
        sa.Column("worker", sa.Text),
        sa.Column("lease_until", sa.Double),
        sa.Column("reason", sa.Text),
        sa.Column("program", sa.Text),
    )
    op.create_index("programs_by_key", "programs", ["key"])


def downgrade() -> None:
    """Drop them. The bodies of programs stay, as artifacts of their federations."""
    op.drop_table("programs")
    op.drop_column("tasks", "rung")
