"""Client selection: the order in which available devices are selected, and the plan for them.

The coordinator and the simulator both select devices with this module.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from edgefl.noise import derive
from edgefl.strategies import Model, Participant, PlannedTask, RoundContext, Strategy

__all__ = ["ClientRecord", "plan_round", "selection_order"]

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
) -> Mapping[str, PlannedTask]:
    """Return the planned tasks of up to `count` devices: the first in the queue for which the strategy has a task.

    `participant` looks a device up; it is called only for devices that may be selected.
    """
    chosen, waiting = list(queue[: max(0, count)]), queue[max(0, count) :]
    while chosen:
        known = [(device, participant(device)) for device in chosen]
        planned_tasks = strategy.plan(model, [one for _, one in known], round_context)
        fit = [device for device, one in known if one.device_id in planned_tasks]
        left_out = len(chosen) - len(fit)
        if not left_out or not waiting:
            return planned_tasks
        chosen, waiting = fit + list(waiting[:left_out]), waiting[left_out:]
    return {}


def _draw(seed: int, device: str) -> float:
    return -math.log1p(-derive(seed, device) / 2**64)
