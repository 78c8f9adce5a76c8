"""Client selection: the order in which available devices are selected, and the plan for them.

The coordinator and the simulator both select devices with this module.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from edgefl.federation.budget_reasons import reasons_by_budget
from edgefl.federation.capability_check import Needs, plan_capable
from edgefl.federation.left_out import RoundPlan, reason_of
from edgefl.federation.program_planning import MOST_WANTED
from edgefl.federation.programs import ProgramCatalogue
from edgefl.noise import derive
from edgefl.strategies import Model, Participant, RoundContext, Strategy
from edgefl.values import ProgramSpec

__all__ = ["ClientRecord", "participants_of", "plan_round", "selection_order"]

Device = TypeVar("Device")


@dataclass(frozen=True, slots=True)
class ClientRecord:
    """A device's record when devices are selected."""

    device_id: str
    done: int = 0
    """Tasks that it completed."""
    failed: int = 0
    """Tasks that it refused or did not complete in time."""

    @property
    def reliability(self) -> float:
        """Estimated probability that it completes a task: 1/2 before the first (Laplace's rule of succession)."""
        return (self.done + 1) / (self.done + self.failed + 2)


def selection_order(devices: Iterable[Device], seed: int, record: Callable[[Device], ClientRecord]) -> list[Device]:
    """Return devices in the order in which they are selected; reliable ones are more often early.

    Each draws an exponential time whose rate is its reliability, and the earliest come first: a weighted draw without
    replacement (Efraimidis and Spirakis, 2006). A draw depends only on the seed and the device's id, not on the others.
    """
    known = [(record(device), device) for device in devices]
    known.sort(key=lambda pair: (_draw(seed, pair[0].device_id) / pair[0].reliability, pair[0].device_id))
    return [device for _, device in known]


def plan_round(
    strategy: Strategy,
    model: Model,
    queue: Sequence[Device],
    count: int,
    round_context: RoundContext,
    participant: Callable[[Device], Participant],
    name: Callable[[Device], str],
    programs: ProgramCatalogue | None = None,
) -> RoundPlan:
    """Plan for up to `count` devices: the first in the queue for which the strategy has a task.

    `participant` looks a device up by what is known of it; it is called only for devices that may be selected. A device
    for which that or the planning fails, whose software cannot do its task, or that nothing fits, is left out with the
    reason, and others take its place; if planning fails for all, this fails. `programs` are those of the federation.
    """
    chosen, waiting = list(queue[: max(0, count)]), deque(queue[max(0, count) :])
    left_out: dict[str, str] = {}
    needs, wanted = Needs(has_programs=programs is not None), dict[ProgramSpec, None]()
    why = reasons_by_budget(strategy, model, round_context)
    failure: Exception | None = None
    while chosen:
        try:
            known, faults = participants_of(chosen, participant, name)
            planned = plan_capable(
                lambda some: strategy.plan(model, some, round_context), known, needs, programs=programs, why=why
            )
            failure = None
        except Exception as error:  # for every chosen one, but the next in the queue may be sound
            failure, faults, planned = error, {name(device): reason_of(error) for device in chosen}, RoundPlan()
        left_out |= faults | dict(planned.left_out)
        wanted |= dict.fromkeys(planned.wanted)
        fit = [device for device in chosen if name(device) in planned.tasks]
        further, skipped = _next(waiting, len(chosen) - len(fit), needs, participant, name)
        left_out |= skipped
        if not further:
            if failure is not None and not planned.tasks:
                raise failure
            return RoundPlan(planned.tasks, left_out, tuple(wanted)[:MOST_WANTED])
        chosen = fit + further
    return RoundPlan()


def _next(
    waiting: deque[Device],
    count: int,
    needs: Needs,
    participant: Callable[[Device], Participant],
    name: Callable[[Device], str],
) -> tuple[list[Device], dict[str, str]]:
    """Take the next devices of the queue, without those that could do no task of those planned so far.

    In a fleet where most lack something, a plan for every few of them would take too long.
    """
    taken: list[Device] = []
    left_out: dict[str, str] = {}
    while waiting and len(taken) < count:
        device = waiting.popleft()
        try:
            reason = needs.lacking_for_all(participant(device).capabilities)
        except Exception:  # it is looked up again, and the failure noted, when it is planned for
            reason = None
        if reason is None:
            taken.append(device)
        else:
            left_out[name(device)] = reason
    return taken, left_out


def participants_of(
    devices: Iterable[Device], participant: Callable[[Device], Participant], name: Callable[[Device], str]
) -> tuple[list[Participant], dict[str, str]]:
    """Look devices up; return those that could be, and why the others could not. Raise an error if none could."""
    found: list[Participant] = []
    left_out: dict[str, str] = {}
    failure: Exception | None = None
    for device in devices:
        try:
            found.append(participant(device))
        except Exception as error:
            failure, left_out[name(device)] = error, reason_of(error)
    if failure is not None and not found:
        raise failure
    return found, left_out


def _draw(seed: int, device: str) -> float:
    return -math.log1p(-derive(seed, device) / 2**64)
