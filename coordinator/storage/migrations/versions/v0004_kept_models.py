"""Adds which models are still stored, and why a device was left out of a round."""

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. So far every model was kept."""
    op.add_column("rounds", sa.Column("model_kept", sa.Boolean, nullable=False, server_default=sa.true()))
    op.add_column("devices", sa.Column("left_out", sa.Text))


def downgrade() -> None:
    """Drop the columns. Models that were dropped stay lost."""
    op.drop_column("devices", "left_out")
    op.drop_column("rounds", "model_kept")
