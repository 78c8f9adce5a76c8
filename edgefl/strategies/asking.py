"""Which of the devices that could be asked are: those that a strategy leaves out are replaced by the next in line.

The coordinator and the simulation both ask strategies through this.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from edgefl.strategies.strategy import Model, Moment, Order, Participant, Strategy

__all__ = ["orders_for"]

Device = TypeVar("Device")


def orders_for(
    strategy: Strategy,
    model: Model,
    queue: Sequence[Device],
    count: int,
    moment: Moment,
    participant: Callable[[Device], Participant],
) -> Mapping[str, Order]:
    """Return what a strategy asks of up to `count` devices, the first in the queue that can do something useful.

    `participant` says what is known of a device; only those that come to be asked are looked up.
    """
    chosen, waiting = list(queue[: max(0, count)]), queue[max(0, count) :]
    while chosen:
        known = [(device, participant(device)) for device in chosen]
        orders = strategy.plan(model, [one for _, one in known], moment)
        fit = [device for device, one in known if one.device_id in orders]
        left_out = len(chosen) - len(fit)
        if not left_out or not waiting:
            return orders
        chosen, waiting = fit + list(waiting[:left_out]), waiting[left_out:]
    return {}
