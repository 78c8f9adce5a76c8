"""Long polling: wakes a waiting device as soon as it has a task.

`Context.wake` wakes the devices of tasks that this process opens. Tasks that another worker opens are found by one
query every half second, however many devices wait. A device waits only once: when it polls again, because its
connection was lost, its older poll is answered.

`LastSeen` notes when devices were seen and got their tasks, and writes it once a second for all: a write for every
poll would be the most frequent write of all.
"""

import asyncio
import contextlib
import itertools
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from coordinator.errors import CoordinatorError, ErrorReason
from coordinator.polling.poll_response import PollResponse, next_response, nothing, retry_seconds
from coordinator.polling.poll_schedule import (
    LEAST_SPREAD,
    LONGEST_IDLE,
    LONGEST_PAUSE,
    LONGEST_SPREAD,
    UNKNOWN,
    DelayBounds,
    PollDelay,
    PollSchedule,
)
from coordinator.rounds.context import Context
from coordinator.storage.records import Device
from coordinator.thread_pools import ThreadPools

__all__ = ["LONGEST_WAIT", "LastSeen", "LongPolls"]

_log = logging.getLogger("coordinator.polling.long_poll")

LONGEST_WAIT = 30.0
_TICK_SECONDS = 0.5
_SEEN_TICKS = 4
_FLUSH_SECONDS = 1.0
_BATCH = 32
_RESTART_SECONDS = 1.0
"""The least time that a restart takes."""


class LongPolls:
    """The open polls of this process."""

    def __init__(
        self, context: Context, threads: ThreadPools, *, most: int, seen: Callable[[str], None] = lambda device: None
    ) -> None:
        self._context, self._threads, self._most, self._seen = context, threads, most, seen
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._closed = False
        self._busy: set[str] | None = None
        """Devices that may have an open task; None until the database was read."""
        self._woken: set[str] = set()
        """Devices that were woken since it was last read."""
        self._over: set[str] = set()
        """Federations that are over."""
        self._bounds: dict[str, DelayBounds] = {}
        self._schedule = PollSchedule(lambda federation: self._bounds.get(federation, DelayBounds()))

    @property
    def open(self) -> int:
        """Number of waiting devices."""
        return len(self._waiting)

    async def start(self) -> None:
        """Start to wake devices."""
        self._loop = asyncio.get_running_loop()
        self._context.wake = self.wake
        self._ticker = asyncio.create_task(self._tick())

    async def stop(self) -> None:
        """Answer every poll and stop."""
        self.close()
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)

    def close(self) -> None:
        """Answer every open poll now, and later ones at once."""
        self._closed = True
        self._wake_now(list(self._waiting))

    def wake(self, devices: Collection[str]) -> None:
        """Wake devices. May be called from any thread."""
        if self._loop is not None and devices:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._wake_now, list(devices))

    def ended(self, device: str) -> None:
        """Note that a device has ended its task: it has no other one, unless it was woken since."""
        if self._busy is not None and device not in self._woken:
            self._busy.discard(device)

    async def next(self, device: Device, seconds: float) -> PollResponse:
        """Return a device's task; if it has none, wait for one for up to `seconds`."""
        if seconds <= 0 or self._closed:
            return await self._answer(device, self._delay(device))
        with self._wait(device.id) as woken:  # before reading, so that no wake is missed
            answer = await self._answer(device)
            if not answer.waits:
                return answer
            await self._woken_within(woken, min(seconds, LONGEST_WAIT))
        return await self._answer(device)

    def retry_seconds(self, device: Device) -> float:
        """Return when a device that has just ended its task should poll."""
        return retry_seconds(self._delay(device))

    def _delay(self, device: Device) -> PollDelay:
        return self._schedule.delay(device.federation, time.monotonic())

    async def _answer(self, device: Device, delay: PollDelay = UNKNOWN) -> PollResponse:
        """Return the answer to a poll. Read the database only if the device may have a task or its federation is
        over, and not while stopping."""
        if self._closed:
            return nothing(PollDelay(_RESTART_SECONDS))
        if self._busy is None or device.id in self._busy or device.federation in self._over:
            return await self._threads.read(next_response, self._context, device, delay)
        return nothing(delay)

    def _find_bounds(self, federations: Collection[str]) -> dict[str, DelayBounds]:
        """Return how long devices may stay away: a fraction of the time in which they count as available, and of a
        round's deadline; in buffered mode the next task may come at any time."""
        repository, found = self._context.repository, {}
        for name in federations:
            known = repository.federation(name)
            if known is not None:
                settings = repository.settings(known)
                away, deadline = settings.selection.available_within / 4, settings.rounds.deadline / 4
                found[name] = DelayBounds(
                    pause=0.0 if settings.buffered else min(LONGEST_PAUSE, away, deadline),
                    idle=min(LONGEST_IDLE, away, deadline),
                    spread=min(LONGEST_SPREAD, max(LEAST_SPREAD / 2, deadline)),
                )
        return found

    @contextlib.contextmanager
    def _wait(self, device: str) -> Iterator[asyncio.Future[None]]:
        older = self._waiting.pop(device, None)
        if older is not None and not older.done():
            older.set_result(None)
        if len(self._waiting) >= self._most:
            raise CoordinatorError(
                ErrorReason.UNAVAILABLE,
                f"{self._most} devices are already waiting",
                fix="Poll again later.",
                retry_seconds=random.uniform(5, 15),
            )
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[device] = woken
        try:
            yield woken
        finally:
            if self._waiting.get(device) is woken:
                del self._waiting[device]

    async def _woken_within(self, woken: asyncio.Future[None], seconds: float) -> None:
        timer = asyncio.get_running_loop().call_later(seconds, _resolve, woken)
        try:
            await woken
        finally:
            timer.cancel()

    def _wake_now(self, devices: Collection[str]) -> None:
        self._woken.update(devices)
        if self._busy is not None:
            self._busy.update(devices)
        self._resolve_all([device for device in devices if device in self._waiting])

    def _resolve_all(self, devices: Sequence[str]) -> None:
        """Answer a few polls, and the others after that: a thousand at once would block the event loop."""
        for device in devices[:_BATCH]:
            if device in self._waiting:
                _resolve(self._waiting[device])
        if len(devices) > _BATCH:
            asyncio.get_running_loop().call_soon(self._resolve_all, devices[_BATCH:])

    async def _tick(self) -> None:
        for tick in itertools.count():
            await asyncio.sleep(_TICK_SECONDS)
            for device in self._waiting if tick % _SEEN_TICKS == 0 else ():
                self._seen(device)  # a device that waits here is connected
            try:
                self._woken.clear()
                self._over = await self._threads.run(self._context.store.federations.ended)
                busy = await self._threads.run(self._context.store.tasks.busy_devices)
                self._busy = busy.keys() | self._woken  # a device woken meanwhile may be missing in what was read
                self._schedule.count(Counter(busy.values()), time.monotonic(), self._over)
                self._bounds = await self._threads.run(self._find_bounds, self._schedule.federations)
                self._resolve_all([device for device in busy if device in self._waiting])
            except Exception:
                _log.exception("tasks of waiting devices could not be read")


def _resolve(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


class LastSeen:
    """When devices were last seen, and when they got their tasks."""

    def __init__(self, context: Context, threads: ThreadPools) -> None:
        self._context, self._threads = context, threads
        self._times: dict[str, float] = {}
        self._flusher: asyncio.Task[None] | None = None

    def note(self, device: str) -> None:
        """Note that a device was seen now."""
        self._times[device] = self._context.now()

    async def start(self) -> None:
        """Start to write."""
        self._flusher = asyncio.create_task(self._flush_for_ever())

    async def stop(self) -> None:
        """Write what is left, and stop."""
        if self._flusher is not None:
            self._flusher.cancel()
            await asyncio.gather(self._flusher, return_exceptions=True)
        await self._flush()

    async def _flush_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            await self._flush()

    async def _flush(self) -> None:
        times, self._times = self._times, {}
        handed, corrections = self._context.take_handed(), self._context.corrections.take()
        try:
            if times or handed or corrections:
                await self._threads.run(self._write, times, handed, corrections)
        except Exception:
            _log.exception("when devices were seen could not be stored")
            self._times = times | self._times
            for task, at in handed.items():
                self._context.note_handed(task, at)

    def _write(self, times: dict[str, float], handed: dict[str, float], corrections: dict[str, str]) -> None:
        if times:
            self._context.store.devices.mark_seen(times)
        if handed:
            self._context.store.tasks.mark_handed_out(handed)
        self._context.store.devices.set_corrections(corrections)
