"""Buffered (asynchronous) mode in simulated time: devices get a task whenever they are online and free.

The same as at the coordinator (`coordinator.rounds.state_machine`): up to `at_once` devices work at the same time, each
task has its own deadline, an update counts in the round that is open when it arrives, with less weight the older its
model is, and a full buffer makes a new model. A device that goes offline goes on when it is back.
"""

import heapq
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from edgefl.federation.settings import FederationSettings
from edgefl.federation.updates import staleness_weight
from edgefl.simulation.availability import finished_at
from edgefl.simulation.fleet import FleetDevice
from edgefl.simulation.job_dispatch import DispatchedJob
from edgefl.simulation.jobs import TrainingOutcome
from edgefl.simulation.results import DeviceRound, Fate, RoundResult
from edgefl.simulation.simulated_clock import SimulatedClock, away_between, none_coming
from edgefl.strategies import ClientUpdate

__all__ = ["BufferedFederation", "BufferedRounds", "TrainedTask"]


@dataclass(frozen=True, slots=True, eq=False)
class TrainedTask:
    """A task that was trained, and its update with the model that it started from; None if it has none."""

    dispatched: DispatchedJob
    outcome: TrainingOutcome
    record: DeviceRound
    update: ClientUpdate | None


class BufferedFederation(Protocol):
    """What the simulated federation does for buffered rounds."""

    fleet: tuple[FleetDevice, ...]
    settings: FederationSettings

    @property
    def clock(self) -> SimulatedClock:
        """The simulated time."""
        ...

    def hand_out(self, number: int, serial: int, devices: Sequence[FleetDevice], count: int) -> list[TrainedTask]:
        """Plan for up to some devices with the present model, and train their tasks."""
        ...

    def note(self, finished: TrainedTask, *, counts: bool) -> None:
        """Note whether the update of a task counts."""
        ...

    def aggregate(self, number: int, updates: Sequence[ClientUpdate]) -> None:
        """Make the next model."""
        ...

    def result_of(self, number: int, devices: Sequence[DeviceRound], wall: float, began_at: float) -> RoundResult:
        """Return the results of a round that ends now."""
        ...


@dataclass(order=True, slots=True)
class _Open:
    """A task in progress, by the time at which it ends."""

    ends_at: float
    order: int
    version: int = field(compare=False)
    is_late: bool = field(compare=False)
    finished: TrainedTask = field(compare=False)


class BufferedRounds:
    """Runs the rounds of a federation in buffered mode."""

    def __init__(self, federation: BufferedFederation) -> None:
        self._federation, self._settings = federation, federation.settings
        self._open: list[_Open] = []
        self._serial = self._order = 0

    def run(self, until: float = math.inf) -> Iterator[RoundResult]:
        """Run all rounds, one for each result that is taken, up to a simulated time."""
        for number in range(self._settings.rounds.count):
            result = self._round(number, until)
            if result is None:
                return
            yield result

    def _round(self, number: int, until: float) -> RoundResult | None:
        federation, clock, rounds = self._federation, self._federation.clock, self._settings.rounds
        began, began_at, closes_at = time.perf_counter(), clock.now, clock.now + rounds.deadline
        records: list[DeviceRound] = []
        updates: list[ClientUpdate] = []
        self._serial = 0
        while len(updates) < self._settings.buffering.size:
            self._top_up(number)
            moment = min(self._next_event(), closes_at)
            if moment >= until:
                clock.now = until
                return None
            clock.now = moment
            while self._open and self._open[0].ends_at <= clock.now:
                self._arrived(heapq.heappop(self._open), number, records, updates)
            if clock.now >= closes_at:
                if len(updates) >= rounds.at_least:
                    break
                closes_at = clock.now + rounds.deadline
        federation.aggregate(number, updates)
        return federation.result_of(number, records, time.perf_counter() - began, began_at)

    def _top_up(self, number: int) -> None:
        """Keep `at_once` devices busy."""
        room, clock = self._settings.buffering.at_once - len(self._open), self._federation.clock
        busy = {one.finished.record.device_id for one in self._open}
        free = [one for one in self._online() if one.device_id not in busy] if room > 0 else []
        if not free:
            return
        self._serial += 1
        devices: Mapping[str, FleetDevice] = {one.device_id: one for one in free}
        for finished in self._federation.hand_out(number, self._serial, free, room):
            device, seconds = devices[finished.record.device_id], finished.record.simulated_seconds
            ends_at = finished_at(clock.availability, device, clock.now, seconds)
            expires_at, self._order = clock.now + self._settings.rounds.deadline, self._order + 1
            away = away_between(clock.now, ends_at, seconds)
            finished = replace(finished, record=replace(finished.record, away_seconds=away))
            is_late = ends_at > expires_at
            heapq.heappush(self._open, _Open(min(ends_at, expires_at), self._order, number, is_late, finished))

    def _online(self) -> list[FleetDevice]:
        clock = self._federation.clock
        return [one for one in self._federation.fleet if clock.availability.online_until(one, clock.now) is not None]

    def _next_event(self) -> float:
        """Return when the next task ends, or a free device comes."""
        clock = self._federation.clock
        busy = {one.finished.record.device_id for one in self._open}
        coming = math.inf
        if len(busy) < self._settings.buffering.at_once:
            away = [
                one
                for one in self._federation.fleet
                if one.device_id not in busy and clock.availability.online_until(one, clock.now) is None
            ]
            coming = clock.availability.next_change(away, clock.now)
        found = min(coming, self._open[0].ends_at if self._open else math.inf)
        if math.isinf(found):
            raise none_coming(clock.now)
        return found

    def _arrived(self, task: _Open, number: int, records: list[DeviceRound], updates: list[ClientUpdate]) -> None:
        finished, age = task.finished, number - task.version
        record, update = finished.record, finished.update
        if record.fate is Fate.ARRIVED and (task.is_late or age > self._settings.buffering.most_staleness):
            record = replace(record, fate=Fate.LATE)
        counts = record.fate is Fate.ARRIVED and update is not None
        if counts and update is not None:
            updates.append(replace(update, trust=staleness_weight(self._settings, age)))
        self._federation.note(finished, counts=counts)
        records.append(record)
