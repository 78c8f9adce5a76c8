"""The simulated clock of a federation: who is online, what becomes of a task, and when a round ends.

As at the coordinator, a round ends when all selected devices are back, or at its deadline.
"""

from collections.abc import Sequence

from edgefl.errors import EdgeFLError
from edgefl.noise import derive
from edgefl.simulation.availability import Availability
from edgefl.simulation.fleet import FleetDevice
from edgefl.simulation.results import DeviceRound, Fate

__all__ = ["SimulatedClock"]


class SimulatedClock:
    """Simulated seconds since the start; only devices' work advances them."""

    def __init__(self, fleet: Sequence[FleetDevice], availability: Availability, deadline: float, seed: int) -> None:
        self._fleet, self._availability, self._deadline, self._seed = fleet, availability, deadline, seed
        self.now = 0.0

    def present(self) -> list[FleetDevice]:
        """Return the devices that are online; if none is, wait for the first one."""
        while True:
            here = [one for one in self._fleet if self._availability.online_until(one, self.now) is not None]
            if here:
                return here
            coming = self._availability.next_change(self._fleet, self.now)
            if coming == float("inf"):
                raise EdgeFLError(
                    f"no device is online after {self.now:,.0f} simulated seconds, and none will be",
                    fix="Give a longer trace, or ask for fewer rounds.",
                )
            self.now = coming

    def fails(self, device: FleetDevice, number: int) -> bool:
        """Return whether a device fails at its task of this round, as often as its class says."""
        return derive(self._seed, "fails", number, device.device_id) / 2**64 < device.kind.fails

    def fate(self, device: FleetDevice, seconds: float) -> Fate:
        """Return what becomes of a task that takes this long from now."""
        until = self._availability.online_until(device, self.now)
        if until is None or self.now + min(seconds, self._deadline) > until:
            return Fate.LOST
        return Fate.ARRIVED if seconds <= self._deadline else Fate.LATE

    def close(self, devices: Sequence[DeviceRound]) -> float:
        """Advance the clock by a round, and return how long it took."""
        waited = any(one.fate in (Fate.LATE, Fate.LOST) for one in devices)
        longest = max((one.simulated_seconds for one in devices), default=0.0)
        seconds = self._deadline if waited else min(longest, self._deadline)
        self.now += seconds
        return seconds
