"""The present state of a Linux device, for the owner's policy. Only what the policy asks for is read.

A thermal status is not read here: Linux shows degrees. The seam is for clients whose system reports one.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from device_runtime.agent.owner_policy import DeviceConditions, OwnerPolicy
from device_runtime.telemetry import battery_saver, celsius, memory_size, metered, plugged

__all__ = ["SystemConditions"]

_NETWORK_SECONDS = 20.0
"""How long an answer about the network is believed: asking for it starts a process."""


@dataclass(slots=True, eq=False)
class SystemConditions:
    """Reads the conditions that a policy looks at."""

    policy: OwnerPolicy
    ask_network: Callable[[], bool | None] = metered
    clock: Callable[[], float] = time.monotonic
    _network: tuple[float, bool | None] | None = field(default=None, init=False)

    def __call__(self) -> DeviceConditions:
        """Return the state of the device now."""
        size = memory_size()
        return DeviceConditions(
            datetime.now().astimezone(),
            plugged(),
            celsius(),
            None if size is None else size.available_bytes,
            metered=self._metered() if self.policy.unmetered_only else None,
            battery_saver=battery_saver() if self.policy.outside_battery_saver else None,
        )

    def _metered(self) -> bool | None:
        now = self.clock()
        if self._network is None or now - self._network[0] >= _NETWORK_SECONDS:
            self._network = now, self.ask_network()
        return self._network[1]
