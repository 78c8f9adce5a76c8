"""Adds what a device's rounds really took, compared with what was predicted."""

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; nothing is known about existing devices yet."""
    op.add_column("devices", sa.Column("correction", sa.Text))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("devices", "correction")
