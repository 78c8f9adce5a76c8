"""Which devices take part in a round: available ones, the reliable ones more often, by seeded chance.

Pure: devices in, devices out. The same seed and devices give the same choice on every worker. Whether a device can
afford anything is the strategy's word: the ones that it leaves out are replaced by the next in this order.
"""

import hashlib
import math
from collections.abc import Sequence

from coordinator.storage.records import Device

__all__ = ["in_order", "reliability", "seed_of"]


def in_order(devices: Sequence[Device], seed: int) -> list[Device]:
    """Return the devices in the order in which they are to be asked.

    Each draws an exponential time whose rate is its reliability, and the earliest come first: a weighted draw without
    replacement (Efraimidis and Spirakis, 2006). A device's draw depends on the seed and its own id alone, so who else
    is available changes nothing about it.
    """
    return sorted(devices, key=lambda device: (_draw(seed, device.id) / reliability(device), device.id))


def reliability(device: Device) -> float:
    """Return how likely a device is to end a task, from those it was given: 1/2 before the first (Laplace's rule)."""
    return (device.done + 1) / (device.done + device.failed + 2)


def seed_of(*parts: str | int) -> int:
    """Return a 64-bit seed that depends on all parts."""
    text = "\0".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


def _draw(seed: int, device: str) -> float:
    return -math.log1p(-seed_of(seed, device) / 2**64)
