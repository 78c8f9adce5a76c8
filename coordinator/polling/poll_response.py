"""What a device that asks is told to do.

An answer is the JSON of an `Assignment`. Its plan is the text that the database keeps, with the time that is left: a
thousand devices may ask within a second, and nobody need read and check a plan again that is only passed on.
"""

import json
import random
from dataclasses import dataclass

from coordinator.polling.poll_schedule import UNKNOWN, PollDelay
from coordinator.rounds.context import Context
from coordinator.storage.records import OVER, Device, Federation, Task
from edgefl.values import Assignment, to_json

__all__ = ["PollResponse", "next_response", "nothing", "retry_seconds"]

_SOONEST = 0.3
"""Seconds. A device that may wait for its answer rarely sees this; one that may not comes back after it, and after up
to `pace.LEAST_SPREAD` more."""
_LEAST_SECONDS = 1.0
"""Of a deadline: with less than this left, a task is not worth beginning."""
_EMPTY = to_json(Assignment(retry_seconds=_SOONEST))


@dataclass(frozen=True, slots=True)
class PollResponse:
    """The answer to a poll."""

    body: bytes
    """JSON of an `Assignment`."""
    waits: bool = False
    """Whether there is nothing to do now, but there will be."""
    has_plan: bool = False


def nothing(lull: PollDelay = UNKNOWN, *, finished: bool = False) -> PollResponse:
    """Return the answer that there is nothing to do."""
    return PollResponse(_written(retry_seconds=retry_seconds(lull), finished=finished), waits=not finished)


def retry_seconds(lull: PollDelay) -> float:
    """Return when a device shall come that has nothing to do: after the lull, and not together with all others."""
    return round(_SOONEST + lull.pause + random.uniform(0, lull.spread), 3)


def next_response(context: Context, device: Device, lull: PollDelay = UNKNOWN) -> PollResponse:
    """Return a device's task, or when to ask again. The same task is given until it has ended."""
    task = context.store.tasks.oldest_open(device.id)
    if task is None:
        known = context.store.federations.get(device.federation)
        return nothing(lull, finished=known is None or known.state in OVER)
    federation = context.library.federation(task.federation)
    if federation is None:
        return nothing(finished=True)
    now = context.now()
    left = _seconds_left(context, federation, task, now)
    if left < _LEAST_SECONDS:
        return nothing()
    if task.handed_at is None:
        context.note_handed(task.id, now)
    plan = json.loads(task.plan)
    del plan["schema"]  # a part of a document has none
    return PollResponse(_written(plan=plan | {"deadline_seconds": left}), has_plan=True)


def _written(**fields: object) -> bytes:
    return json.dumps(_EMPTY | fields, ensure_ascii=False, separators=(",", ":")).encode()


def _seconds_left(context: Context, federation: Federation, task: Task, now: float) -> float:
    """Return how long a task may still take: all of a round end together; in buffered mode each has its own time."""
    settings = context.library.settings(federation)
    if settings.buffered and not settings.is_personal(task.round):
        return settings.rounds.deadline - (now - task.created_at)
    return context.library.deadline(task.federation, task.round, int(now)) - now
