"""Adds the programs of federations, compiled or wanted, the rung of a task, and the engine of a device."""

import json

import sqlalchemy as sa
from alembic import op

from coordinator.storage.tables import Word

__all__ = ["branch_labels", "depends_on", "down_revision", "downgrade", "revision", "upgrade"]

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table and the columns. Tasks so far ran ONNX graphs; devices told their engines already."""
    op.add_column("tasks", sa.Column("rung", sa.Text))
    op.add_column("devices", sa.Column("engine", sa.Text))
    devices = sa.table("devices", *(sa.column(name) for name in ("id", "capabilities", "engine")))
    told = sa.select(devices.c.id, devices.c.capabilities).where(devices.c.capabilities.is_not(None))
    for device, text in op.get_bind().execute(told).all():
        op.execute(sa.update(devices).where(devices.c.id == device).values(engine=_engine(text)))
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
    op.drop_column("devices", "engine")
    op.drop_column("tasks", "rung")


def _engine(capabilities: str) -> str | None:
    try:
        engine = json.loads(capabilities)["engines"][0]
        return f"{engine['name']} {engine['version']}"
    except (ValueError, LookupError, TypeError):
        return None
