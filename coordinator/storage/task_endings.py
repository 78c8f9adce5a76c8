"""How tasks end without an update: they expire, and they count as failures of their devices."""

from collections import Counter
from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, Connection, bindparam, select, update

from coordinator.storage.records import TaskState
from coordinator.storage.tables import devices, tasks

__all__ = ["count_failures", "expire_open"]

_COUNT = (
    update(devices)
    .where(devices.c.id == bindparam("device"))
    .values(failed=devices.c.failed + bindparam("more_failed"))
)


def expire_open(connection: Connection, *which: ColumnElement[bool], at: float) -> Sequence[str]:
    """Make open tasks EXPIRED and return their devices."""
    chosen = (*which, tasks.c.state == TaskState.OPEN)
    # PostgreSQL's UPDATE locks rows in any order, so two of them could deadlock: lock the rows in order first.
    lock = select(tasks.c.id, tasks.c.device).where(*chosen).order_by(tasks.c.id).with_for_update(key_share=True)
    locked = connection.execute(lock).all()
    if locked:
        end = update(tasks).where(tasks.c.id == bindparam("task")).values(state=TaskState.EXPIRED, ended_at=at)
        connection.execute(end, [{"task": row.id} for row in locked])
    return [row.device for row in locked]


def count_failures(connection: Connection, owners: Collection[str]) -> None:
    """Count a failed task for each device, as often as it is listed."""
    if owners:
        counts = sorted(Counter(owners).items())
        connection.execute(_COUNT, [{"device": device, "more_failed": more} for device, more in counts])
