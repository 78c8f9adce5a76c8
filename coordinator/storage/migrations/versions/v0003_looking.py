"""What an operator changes and sees while a federation goes on: its deadline, and what was said of a round's plan."""

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; nothing was changed so far, and of earlier plans nothing is known."""
    op.add_column("federations", sa.Column("deadline", sa.Double))
    op.add_column("rounds", sa.Column("plan", sa.Text))


def downgrade() -> None:
    """Drop them."""
    op.drop_column("rounds", "plan")
    op.drop_column("federations", "deadline")
