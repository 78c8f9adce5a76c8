"""When simulated devices are online: at random, as their classes say, or by a recorded trace.

A device comes and goes: times online and offline alternate, each drawn from an exponential distribution. Every draw
depends on the seed, the device and its number alone. A trace is a CSV file with a header and the columns `device`,
`from_seconds` and `to_seconds`: when that device is there. A device that the trace does not name is never there.
"""

import bisect
import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from edgefl.errors import DataError, EdgeFLError
from edgefl.noise import derive
from edgefl.simulation.fleet import FleetDevice

__all__ = ["Always", "Availability", "Sessions", "AvailabilityTrace", "finished_at", "read_trace", "was_online"]

_COLUMNS = ("device", "from_seconds", "to_seconds")


class Availability(Protocol):
    """Says when devices are online, at any time that it is asked about, in any order."""

    def online_until(self, device: FleetDevice, at: float) -> float | None:
        """Return until when a device stays online; None if it is offline."""
        ...

    def next_change(self, devices: Sequence[FleetDevice], at: float) -> float:
        """Return when the first of some offline devices comes online; infinity if none ever does."""
        ...


class Always:
    """Every device is always online."""

    def online_until(self, device: FleetDevice, at: float) -> float | None:
        """Return infinity: it stays online."""
        return math.inf

    def next_change(self, devices: Sequence[FleetDevice], at: float) -> float:
        """Return infinity: nothing ever changes."""
        return math.inf


class Sessions:
    """Devices that come and go at random, as often as their classes say."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._ends: dict[str, tuple[int, list[float]]] = {}
        """For each device, the number of its first period (an even one is online), and the ends of its periods."""

    def online_until(self, device: FleetDevice, at: float) -> float | None:
        """Return the end of a device's current period if it is online."""
        if device.kind.online_seconds is None:
            return math.inf
        number, end = self._at(device, at)
        return end if number % 2 == 0 else None

    def next_change(self, devices: Sequence[FleetDevice], at: float) -> float:
        """Return the first end of the current periods of some devices."""
        return min((self._at(device, at)[1] for device in devices), default=math.inf)

    def _at(self, device: FleetDevice, at: float) -> tuple[int, float]:
        """Return the number and the end of a device's period at a time."""
        if device.device_id not in self._ends:
            number, end = self._first(device)
            self._ends[device.device_id] = number, [end]
        first, ends = self._ends[device.device_id]
        while ends[-1] <= at:
            ends.append(ends[-1] + self._length(device, first + len(ends)))
        place = bisect.bisect_right(ends, at)
        return first + place, ends[place]

    def _first(self, device: FleetDevice) -> tuple[int, float]:
        """Return a device's first period; it is online with its long-run probability."""
        online, offline = device.kind.online_seconds or 0.0, device.kind.offline_seconds or 0.0
        draw = derive(self._seed, "first session", device.device_id) / 2**64
        number = 0 if draw * (online + offline) < online else 1
        return number, self._length(device, number)

    def _length(self, device: FleetDevice, number: int) -> float:
        mean = (device.kind.online_seconds, device.kind.offline_seconds)[number % 2] or 0.0
        return -math.log1p(-derive(self._seed, "session", device.device_id, number) / 2**64) * mean


class AvailabilityTrace:
    """Devices that are online when a recording says so."""

    def __init__(self, intervals: Mapping[str, Sequence[tuple[float, float]]]) -> None:
        self._starts = {name: np.array([begin for begin, _ in sorted(times)]) for name, times in intervals.items()}
        self._ends = {name: np.array([end for _, end in sorted(times)]) for name, times in intervals.items()}

    def online_until(self, device: FleetDevice, at: float) -> float | None:
        """Return the end of the interval that contains this time, if any."""
        starts = self._starts.get(device.device_id)
        if starts is None:
            return None
        place = int(np.searchsorted(starts, at, side="right")) - 1
        end = -math.inf if place < 0 else float(self._ends[device.device_id][place])
        return end if end > at else None

    def next_change(self, devices: Sequence[FleetDevice], at: float) -> float:
        """Return the start of the first interval after this time."""
        return min((self._next(device.device_id, at) for device in devices), default=math.inf)

    def _next(self, device: str, at: float) -> float:
        starts = self._starts.get(device, np.zeros(0))
        place = int(np.searchsorted(starts, at, side="right"))
        return float(starts[place]) if place < len(starts) else math.inf


def finished_at(availability: Availability, device: FleetDevice, at: float, seconds: float) -> float:
    """Return when a device that goes on whenever it is online has worked for some seconds; infinity if never."""
    while True:
        until = availability.online_until(device, at)
        if until is None:
            at = availability.next_change([device], at)
            if math.isinf(at):
                return at
        elif at + seconds <= until:
            return at + seconds
        else:
            seconds -= until - at
            at = until


def was_online(availability: Availability, device: FleetDevice, since: float, at: float) -> bool:
    """Return whether a device was online at any time between two."""
    return (
        availability.online_until(device, at) is not None
        or availability.online_until(device, max(0.0, since)) is not None
        or availability.next_change([device], max(0.0, since)) <= at
    )


def read_trace(path: Path, fleet: Sequence[FleetDevice]) -> AvailabilityTrace:
    """Read a trace of some of a fleet's devices."""
    known = {device.device_id for device in fleet}
    intervals: dict[str, list[tuple[float, float]]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        if rows.fieldnames is None or not set(_COLUMNS) <= set(rows.fieldnames):
            raise DataError(f"{path} lacks a column", fix=f"Its first line must be {','.join(_COLUMNS)}.")
        for row in rows:
            device, begin, end = _interval(row, f"{path}, line {rows.line_num}")
            if device not in known:
                raise EdgeFLError(
                    f"{path}, line {rows.line_num}: the fleet has no device {device!r}",
                    fix=f"Its devices are called {', '.join(sorted(known)[:3])}, ...",
                )
            intervals.setdefault(device, []).append((begin, end))
    return AvailabilityTrace(intervals)


def _interval(row: Mapping[str, str], where: str) -> tuple[str, float, float]:
    try:
        begin, end = float(row["from_seconds"]), float(row["to_seconds"])
    except (TypeError, ValueError):
        raise DataError(f"{where}: the times are not numbers", fix="Write seconds since the start.") from None
    if not 0 <= begin < end < math.inf:
        raise DataError(
            f"{where}: from {begin} to {end}", fix="An interval must start at 0 or later, and end after it starts."
        )
    return row["device"], begin, end
