"""What a device that asks is told to do."""

import random
from dataclasses import replace

from coordinator.context import Context
from coordinator.storage.records import OVER, Device, Federation, Task
from edgefl.values import Assignment

__all__ = ["next_assignment", "nothing"]

_RETRY_SECONDS = 2.0
"""A device that may wait for its answer rarely sees this; one that may not comes back after about so long."""
_LEAST_SECONDS = 1.0
"""Of a deadline: with less than this left, a task is not worth beginning."""


def nothing(*, finished: bool = False) -> Assignment:
    """Return the answer that there is nothing to do; with some jitter, so that a fleet does not come all at once."""
    return Assignment(retry_seconds=_RETRY_SECONDS * random.uniform(0.5, 1.5), finished=finished)


def next_assignment(context: Context, device: Device) -> Assignment:
    """Return a device's task, or when to ask again. The same task is given until it has ended."""
    task = context.store.open_task(device.id)
    if task is None:
        known = context.store.federation(device.federation)
        return nothing(finished=known is None or known.state in OVER)
    federation = context.library.federation(task.federation)
    if federation is None:
        return nothing(finished=True)
    now, plan = context.now(), context.library.plan(task)
    left = _seconds_left(context, federation, task, now)
    if left < _LEAST_SECONDS:
        return nothing()
    if task.handed_at is None:
        context.note_handed(task.id, now)
    return Assignment(retry_seconds=_RETRY_SECONDS, plan=replace(plan, deadline_seconds=left))


def _seconds_left(context: Context, federation: Federation, task: Task, now: float) -> float:
    """Return how long a task may still take: all of a round end together; in buffered mode each has its own time."""
    settings = context.library.settings(federation)
    if settings.buffered:
        return settings.rounds.deadline - (now - task.created_at)
    return context.library.deadline(task.federation, task.round, int(now)) - now
