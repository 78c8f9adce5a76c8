"""The answer to a poll: a device's task, or when to ask again.

An answer is the JSON of an `Assignment`. Its plan is the text stored in the database, with the time that is left: a
thousand devices may ask within a second, and a plan that is only passed on need not be decoded and checked again.
"""

import json
import random
from dataclasses import dataclass, fields

from coordinator.polling.poll_schedule import UNKNOWN, PollDelay
from coordinator.rounds.context import Context
from coordinator.storage.records import OVER, Device, Federation, Task
from edgefl.values import Assignment, ClientPlan, to_json

__all__ = ["PollResponse", "next_response", "nothing", "retry_seconds"]

_SOONEST = 0.3
"""Seconds. A device that long-polls rarely sees this; any other comes back after it, and after up to
`poll_schedule.LEAST_SPREAD` more."""
_LEAST_SECONDS = 1.0
"""Until the deadline: with less than this left, a task is not worth starting."""
_ADDED_FIELDS = [field.name for field in fields(ClientPlan) if field.metadata.get("added")]
_EMPTY = to_json(Assignment(retry_seconds=_SOONEST))


@dataclass(frozen=True, slots=True)
class PollResponse:
    """The answer to a poll."""

    body: bytes
    """JSON of an `Assignment`."""
    waits: bool = False
    """Whether there is no task now, but may be one later."""
    has_plan: bool = False


def nothing(delay: PollDelay = UNKNOWN, *, finished: bool = False) -> PollResponse:
    """Return the answer that there is no task."""
    return PollResponse(_written(retry_seconds=retry_seconds(delay), finished=finished), waits=not finished)


def retry_seconds(delay: PollDelay) -> float:
    """Return when a device without a task should poll: after the pause, spread out at random."""
    return round(_SOONEST + delay.pause + random.uniform(0, delay.spread), 3)


def next_response(context: Context, device: Device, delay: PollDelay = UNKNOWN) -> PollResponse:
    """Return a device's task, or when to ask again. The same task is returned until it has ended."""
    task = context.store.tasks.oldest_open(device.id)
    if task is None:
        known = context.store.federations.get(device.federation)
        return nothing(delay, finished=known is None or known.state in OVER)
    federation = context.repository.federation(task.federation)
    if federation is None:
        return nothing(finished=True)
    now = context.now()
    left = _seconds_left(context, federation, task, now)
    if left < _LEAST_SECONDS:
        return nothing()
    if task.handed_at is None:
        context.note_handed(task.id, now)
    plan = json.loads(task.plan)
    del plan["schema"]  # nested documents have no schema tag
    if device.capabilities is None:  # an agent from before them refuses fields that it does not know
        for name in _ADDED_FIELDS:
            plan.pop(name, None)
    return PollResponse(_written(plan=plan | {"deadline_seconds": left}), has_plan=True)


def _written(**fields: object) -> bytes:
    return json.dumps(_EMPTY | fields, ensure_ascii=False, separators=(",", ":")).encode()


def _seconds_left(context: Context, federation: Federation, task: Task, now: float) -> float:
    """Return how long a task may still take: the tasks of a round end together, buffered ones separately."""
    settings = context.repository.settings(federation)
    if settings.buffered and not settings.is_personal(task.round):
        return settings.rounds.deadline - max(0.0, now - task.created_at)
    return context.repository.deadline(task.federation, task.round, int(now)) - now
