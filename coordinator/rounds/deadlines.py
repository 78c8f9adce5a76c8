"""Deadlines and ages that survive a clock that is set back. Called by the round state machine.

Times are stored as seconds since 1970, so that any worker can go on after any other. If the clock is a day ahead for a
moment, whatever is stored meanwhile lies a day in the future, and must not take effect only then.
"""

import logging

from coordinator.rounds.context import Context
from coordinator.storage.records import Federation, Round

__all__ = ["bounded_round", "seconds_since"]

_LOG = logging.getLogger(__name__)


def bounded_round(context: Context, federation: Federation, current: Round) -> Round:
    """Return an open round whose deadline is no further away than a round lasts. A later one is changed to that."""
    settings, now = context.repository.settings(federation), context.now()
    lasts = settings.rounds.deadline
    if settings.is_personal(current.number):  # that one lasts as long as its devices need
        lasts = max(lasts, current.deadline_at - current.opened_at)
    if current.deadline_at <= now + lasts:
        return current
    rounds = context.store.rounds
    if rounds.bound_deadline(current, latest=now + lasts, now=now, deadline=federation.deadline):
        about = {"federation": federation.id, "round": current.number, "seconds": lasts}
        _LOG.warning("the clock was set back: the open round gets a new deadline", extra=about)
    return rounds.get(current.federation, current.number) or current


def seconds_since(context: Context, event: float | None) -> float:
    """Return how long ago an event was, or the start of this worker if that was later. An event in the future was
    before the clock was set back, and does not count."""
    now = context.now()
    context.started = min(context.started, now)
    return now - (context.started if event is None or event > now else max(event, context.started))
