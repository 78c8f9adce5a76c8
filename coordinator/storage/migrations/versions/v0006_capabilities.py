"""Adds what the software of a device can run."""

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Devices so far sent nothing, and had every rule and codec."""
    op.add_column("devices", sa.Column("capabilities", sa.Text))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("devices", "capabilities")
