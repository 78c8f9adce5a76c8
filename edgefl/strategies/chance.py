"""Where a federation's chance comes from: one seed, and names for what is drawn from it.

The coordinator and the simulation draw through this file, so that the same seed and devices give the same federation
on a table and in the field. A draw depends on the seed and on what it is for alone, never on what was drawn before.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from edgefl.noise import derive

__all__ = ["Record", "combine_seed", "extract_seed", "in_order", "personal_seed", "round_seed", "task_seed"]

Device = TypeVar("Device")


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a device when devices are drawn."""

    device_id: str
    done: int = 0
    """Tasks that it ended."""
    failed: int = 0
    """Tasks that it refused or did not end in time."""

    @property
    def reliability(self) -> float:
        """How likely it is to end a task, from those it was given: 1/2 before the first (Laplace's rule)."""
        return (self.done + 1) / (self.done + self.failed + 2)


def in_order(devices: Iterable[Device], seed: int, record: Callable[[Device], Record]) -> list[Device]:
    """Return devices in the order in which they are to be asked, the reliable ones more often early.

    Each draws an exponential time whose rate is its reliability, and the earliest come first: a weighted draw without
    replacement (Efraimidis and Spirakis, 2006). A device's draw depends on the seed and its own id alone, so who else
    is there changes nothing about it.
    """
    known = [(record(device), device) for device in devices]
    known.sort(key=lambda pair: (_draw(seed, pair[0].device_id) / pair[0].reliability, pair[0].device_id))
    return [device for _, device in known]


def round_seed(seed: int, number: int, serial: int = 1) -> int:
    """Return the seed of a round's selection and plans; `serial` tells later draws of one round apart."""
    return derive(seed, "round", number, serial)


def task_seed(seed: int, number: int, device: str, *again: int) -> int:
    """Return the seed of a device's task, which its training draws from."""
    return derive(seed, "task", number, device, *again)


def combine_seed(seed: int, number: int) -> int:
    """Return the seed of what is drawn when a round's updates are combined."""
    return derive(seed, "combine", number)


def personal_seed(seed: int) -> int:
    """Return the seed of the plans by which devices make the last model their own."""
    return derive(seed, "personal")


def extract_seed(seed: int) -> int:
    """Return the seed of what is drawn when a submodel is taken from the last model."""
    return derive(seed, "extract")


def _draw(seed: int, device: str) -> float:
    return -math.log1p(-derive(seed, device) / 2**64)
