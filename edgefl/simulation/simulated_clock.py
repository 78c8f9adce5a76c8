"""The simulated clock of a federation: who is online, what becomes of a task, and when a round ends.

As at the coordinator, a round ends when it has the updates that it wants, when all selected devices are back, or at its
deadline. A device that goes offline has lost its task, unless devices resume: then it goes on when it is back, and one
that was online lately is given a task even while it is away, as at a coordinator whose `available_within` is long.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from edgefl.errors import EdgeFLError
from edgefl.noise import derive
from edgefl.simulation.availability import Availability, finished_at, was_online
from edgefl.simulation.fleet import FleetDevice
from edgefl.simulation.results import DeviceRound, Fate

__all__ = ["SimulatedClock", "TaskEnd", "away_between", "none_coming"]


@dataclass(frozen=True, slots=True)
class TaskEnd:
    """What becomes of a task, and after how many seconds."""

    fate: Fate
    seconds: float


class SimulatedClock:
    """Simulated seconds since the start; only devices' work advances them."""

    def __init__(
        self,
        fleet: Sequence[FleetDevice],
        availability: Availability,
        deadline: float,
        seed: int,
        *,
        resumes: bool = False,
        available_within: float = 0.0,
        wait_for: int = 1,
    ) -> None:
        self._fleet, self.availability, self._deadline, self._seed = fleet, availability, deadline, seed
        self._resumes, self._within = resumes, available_within
        self._wait_for = min(wait_for, len(fleet))
        self.now = 0.0

    def present(self) -> list[FleetDevice]:
        """Return the devices that are available; if they are too few for a round, wait for others."""
        while True:
            here = [one for one in self._fleet if self._is_available(one)]
            if len(here) >= self._wait_for:
                return here
            coming = self._next_arrival()
            if coming == math.inf:
                raise none_coming(self.now)
            self.now = coming

    def _next_arrival(self) -> float:
        away = [one for one in self._fleet if self.availability.online_until(one, self.now) is None]
        return self.availability.next_change(away, self.now)

    def _is_available(self, device: FleetDevice) -> bool:
        if self._resumes:
            return was_online(self.availability, device, self.now - self._within, self.now)
        return self.availability.online_until(device, self.now) is not None

    def fails(self, device: FleetDevice, number: int) -> bool:
        """Return whether a device fails at its task of this round, as often as its class says."""
        return derive(self._seed, "fails", number, device.device_id) / 2**64 < device.kind.fails

    def end_of(self, device: FleetDevice, seconds: float) -> TaskEnd:
        """Return what becomes of a task that takes this long, from now."""
        if self._resumes:
            after = finished_at(self.availability, device, self.now, seconds) - self.now
            return TaskEnd(Fate.ARRIVED if after <= self._deadline else Fate.LATE, after)
        until = self.availability.online_until(device, self.now)
        if until is None or self.now + min(seconds, self._deadline) > until:
            return TaskEnd(Fate.LOST, seconds)
        return TaskEnd(Fate.ARRIVED if seconds <= self._deadline else Fate.LATE, seconds)

    def close(self, devices: Sequence[DeviceRound], wanted: int) -> float:
        """Advance the clock by a round that wants this many updates, and return how long it took.

        A round in which no device has a task waits for the next device, if there is one to come.
        """
        if not devices and (coming := self._next_arrival()) < math.inf:
            waited_for, self.now = coming - self.now, coming
            return waited_for
        ends = [one.simulated_seconds + one.away_seconds for one in devices if one.fate in (Fate.ARRIVED, Fate.REFUSED)]
        enough = sum(one.fate is Fate.ARRIVED for one in devices) >= wanted
        waited = not enough and any(one.fate in (Fate.LATE, Fate.LOST) for one in devices)
        seconds = self._deadline if waited else min(max(ends, default=0.0), self._deadline)
        self.now += seconds
        return seconds

    @staticmethod
    def in_time(devices: Sequence[DeviceRound], wanted: int) -> list[DeviceRound]:
        """Return the records of a round that closes with this many updates: those that arrive after them are late."""
        order = sorted(
            (one.simulated_seconds + one.away_seconds, place)
            for place, one in enumerate(devices)
            if one.fate is Fate.ARRIVED
        )
        beyond = {place for _, place in order[wanted:]}
        return [replace(one, fate=Fate.LATE) if place in beyond else one for place, one in enumerate(devices)]


def away_between(begin: float, end: float, seconds: float) -> float:
    """Return how long a device was offline that worked for some seconds in between; 0 if it never ends."""
    away = end - begin - seconds
    return away if 1e-3 < away < math.inf else 0.0


def none_coming(now: float) -> EdgeFLError:
    """Return the error that no device will ever be online again."""
    return EdgeFLError(
        f"no device is online after {now:,.0f} simulated seconds, and none will be",
        fix="Give a longer trace, or ask for fewer rounds.",
    )
