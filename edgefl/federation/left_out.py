"""Leaves out devices whose claims or updates make a computation fail, so that the round goes on with the others.

Profiles, masks and updates come from strangers. They are bounded and checked where they arrive; what gets through and
still raises an error must cost only its own device the round, never the federation. Nothing here runs unless the
computation for all devices together has failed.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from edgefl.errors import EdgeFLError, MaskError, SchemaError, WireFormatError
from edgefl.strategies import Participant, PlannedTask
from edgefl.values import ProgramSpec

__all__ = ["LONGEST_REASON", "RoundPlan", "plan_sound", "reason_of", "run_sound"]

_LOG = logging.getLogger(__name__)
LONGEST_REASON = 300
_UNSOUND = (WireFormatError, MaskError, SchemaError, ArithmeticError, LookupError, TypeError, ValueError)
"""What the content of an update or a mask can raise. A disk or a network that fails raises others."""
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True, eq=False)
class RoundPlan:
    """Planned tasks by device, and why devices got none: planning for them failed, or they cannot do their task."""

    tasks: Mapping[str, PlannedTask] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    wanted: tuple[ProgramSpec, ...] = ()
    """Programs that do not exist yet and that devices would run, those of most devices first."""


def plan_sound(
    plan: Callable[[Sequence[Participant]], Mapping[str, PlannedTask]], participants: Sequence[Participant]
) -> RoundPlan:
    """Plan for all devices together. If that fails, leave out those for which it fails alone.

    If it fails for the others together too, every device gets the plan for it alone, which is within its budget. Raise
    the error if it fails for every device: then no device is to blame.
    """
    try:
        return RoundPlan(plan(participants))
    except Exception as error:
        first = error
    alone: dict[str, PlannedTask] = {}
    left_out: dict[str, str] = {}
    for one in participants:
        try:
            alone.update(plan([one]))
        except Exception as error:
            left_out[one.device_id] = reason_of(error)
    if len(left_out) == len(participants):
        raise first
    sound = [one for one in participants if one.device_id not in left_out]
    if left_out:
        try:
            return RoundPlan(plan(sound), left_out)
        except Exception as error:
            first = error
    _LOG.warning("devices could not be planned for together, so each was alone", exc_info=first)
    return RoundPlan(alone, left_out)


def run_sound(work: Callable[[Sequence[int]], Made], count: int) -> tuple[Made, dict[int, str]]:
    """Aggregate or dispatch what `count` devices sent or get. If that fails, leave out those that fail alone.

    `work` does it for the devices at some places. Return what it returns, and by its place why a device was left out.
    Raise the error if every device fails alone, or none does.
    """
    everything = range(count)
    try:
        return work(everything), {}
    except _UNSOUND as error:
        first = error
    left_out: dict[int, str] = {}
    for place in everything:
        try:
            work([place])
        except _UNSOUND as error:
            left_out[place] = reason_of(error)
    if not 0 < len(left_out) < count:
        raise first
    return work([place for place in everything if place not in left_out]), left_out


def reason_of(error: Exception) -> str:
    """Return why a device was left out, for its operator."""
    text = error.problem if isinstance(error, EdgeFLError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:LONGEST_REASON]
