"""How long a task is kept that cannot be worked on now, before the coordinator is told that nothing will come of it.

With a short deadline a device refuses at once, so that the others of the round need not wait for it. With hours to go
it keeps the task: a phone is charged again the next night, and another federation's task ends.
"""

from edgefl.values import ClientPlan, Reason

__all__ = ["OWNER_REASONS", "can_wait_for_owner", "can_wait_for_turn"]

OWNER_REASONS = (
    Reason.POWER,
    Reason.TEMPERATURE,
    Reason.THERMAL,
    Reason.BATTERY_SAVER,
    Reason.METERED,
    Reason.HOURS,
    Reason.ENERGY,
    Reason.TRAFFIC,
)
_PASSING = frozenset(OWNER_REASONS) - {Reason.ENERGY, Reason.TRAFFIC}
"""Conditions that may hold again before a long deadline is over."""
_LONG_SECONDS, _LONG_TIMES = 2 * 3600.0, 2.0
_TURN_SHARE, _TURN_TIMES = 0.25, 1.5


def can_wait_for_owner(plan: ClientPlan, reason: Reason, remaining: float) -> bool:
    """Return whether a task waits until its owner's conditions hold again: if hours are left, and twice its time."""
    return reason in _PASSING and remaining > max(_LONG_SECONDS, _LONG_TIMES * _needed(plan))


def can_wait_for_turn(plan: ClientPlan, remaining: float) -> bool:
    """Return whether a task waits until another federation's ends: if a quarter of its deadline is left, and its time
    and a half."""
    return remaining > max(_TURN_SHARE * plan.deadline_seconds, _TURN_TIMES * _needed(plan))


def _needed(plan: ClientPlan) -> float:
    return 0.0 if plan.predicted is None else plan.predicted.seconds or 0.0
