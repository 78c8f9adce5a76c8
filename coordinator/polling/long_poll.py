"""Long polls: a device that has nothing to do waits for a while, and is woken as soon as there is something.

`Context.tell` wakes the devices of tasks that this process opens. Tasks that another worker opens are found by one
query every half second, whatever the number of devices that wait. A device waits once: when it polls again, because
its connection was lost, its older poll is answered.

Who was heard of when, and was given what, is kept here too, and written once a second for all: a write for every poll
would be the most frequent thing that the database does.
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
_AT_ONCE = 32
_RESTART_SECONDS = 1.0
"""What a coordinator that stops takes at the least to start again."""


class LongPolls:
    """The open polls of this process."""

    def __init__(
        self, context: Context, threads: ThreadPools, *, most: int, seen: Callable[[str], None] = lambda device: None
    ) -> None:
        self._context, self._threads, self._most, self._seen = context, threads, most, seen
        self._bells: dict[str, asyncio.Future[None]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ticker: asyncio.Task[None] | None = None
        self._closed = False
        self._busy: set[str] | None = None
        """Devices that may have an open task; None until the database was asked."""
        self._told: set[str] = set()
        """Devices that were told of something since it was asked last."""
        self._over: set[str] = set()
        """Federations that are over."""
        self._bounds: dict[str, DelayBounds] = {}
        self._pace = PollSchedule(lambda federation: self._bounds.get(federation, DelayBounds()))

    @property
    def open(self) -> int:
        """How many devices wait."""
        return len(self._bells)

    async def start(self) -> None:
        """Begin to listen."""
        self._loop = asyncio.get_running_loop()
        self._context.tell = self.tell
        self._ticker = asyncio.create_task(self._tick())

    async def stop(self) -> None:
        """Answer everybody, and stop listening."""
        self.close()
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)

    def close(self) -> None:
        """Let every poll be answered now, and those that come from here on."""
        self._closed = True
        self._wake(list(self._bells))

    def tell(self, devices: Collection[str]) -> None:
        """Wake devices. From any thread."""
        if self._loop is not None and devices:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._wake, list(devices))

    def ended(self, device: str) -> None:
        """A device has ended its task: it need not be asked for, unless it was told of another one since."""
        if self._busy is not None and device not in self._told:
            self._busy.discard(device)

    async def next(self, device: Device, seconds: float) -> PollResponse:
        """Return what a device shall do; if there is nothing, wait for it up to some seconds."""
        if seconds <= 0 or self._closed:
            return await self._ask(device, self._lull(device))
        with self._bell(device.id) as bell:  # before asking, so that nothing falls in between
            answer = await self._ask(device)
            if not answer.waits:
                return answer
            await self._heard(bell, min(seconds, LONGEST_WAIT))
        return await self._ask(device)

    def retry_seconds(self, device: Device) -> float:
        """Return when a device shall poll that has just ended its task."""
        return retry_seconds(self._lull(device))

    def _lull(self, device: Device) -> PollDelay:
        return self._pace.lull(device.federation, time.monotonic())

    async def _ask(self, device: Device, lull: PollDelay = UNKNOWN) -> PollResponse:
        """Ask the database; not for a device of which it is known that it has nothing to do, and not at the end."""
        if self._closed:
            return nothing(PollDelay(_RESTART_SECONDS))
        if self._busy is None or device.id in self._busy or device.federation in self._over:
            return await self._threads.read(next_response, self._context, device, lull)
        return nothing(lull)

    def _find_bounds(self, federations: Collection[str]) -> dict[str, DelayBounds]:
        """Return for how long devices may stay away: a fraction of what makes them count as available, and of the time
        that a round gives them; in buffered mode the next task may come at any time."""
        library, found = self._context.library, {}
        for name in federations:
            known = library.federation(name)
            if known is not None:
                settings = library.settings(known)
                away, deadline = settings.selection.available_within / 4, settings.rounds.deadline / 4
                found[name] = DelayBounds(
                    pause=0.0 if settings.buffered else min(LONGEST_PAUSE, away, deadline),
                    idle=min(LONGEST_IDLE, away, deadline),
                    spread=min(LONGEST_SPREAD, max(LEAST_SPREAD / 2, deadline)),
                )
        return found

    @contextlib.contextmanager
    def _bell(self, device: str) -> Iterator[asyncio.Future[None]]:
        older = self._bells.pop(device, None)
        if older is not None and not older.done():
            older.set_result(None)
        if len(self._bells) >= self._most:
            raise CoordinatorError(
                ErrorReason.UNAVAILABLE,
                f"{self._most} devices wait already",
                fix="Poll again later.",
                retry_seconds=random.uniform(5, 15),
            )
        bell: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._bells[device] = bell
        try:
            yield bell
        finally:
            if self._bells.get(device) is bell:
                del self._bells[device]

    async def _heard(self, bell: asyncio.Future[None], seconds: float) -> None:
        timer = asyncio.get_running_loop().call_later(seconds, _ring, bell)
        try:
            await bell
        finally:
            timer.cancel()

    def _wake(self, devices: Collection[str]) -> None:
        self._told.update(devices)
        if self._busy is not None:
            self._busy.update(devices)
        self._ring_all([device for device in devices if device in self._bells])

    def _ring_all(self, devices: Sequence[str]) -> None:
        """Ring a few bells, and the others after that: a thousand at once would let nobody else in between."""
        for device in devices[:_AT_ONCE]:
            if device in self._bells:
                _ring(self._bells[device])
        if len(devices) > _AT_ONCE:
            asyncio.get_running_loop().call_soon(self._ring_all, devices[_AT_ONCE:])

    async def _tick(self) -> None:
        for tick in itertools.count():
            await asyncio.sleep(_TICK_SECONDS)
            for device in self._bells if tick % _SEEN_TICKS == 0 else ():
                self._seen(device)  # who waits here is there
            try:
                self._told.clear()
                self._over = await self._threads.run(self._context.store.federations.ended)
                busy = await self._threads.run(self._context.store.tasks.busy_devices)
                self._busy = busy.keys() | self._told  # who was told meanwhile may not be in the answer
                self._pace.count(Counter(busy.values()), time.monotonic(), self._over)
                self._bounds = await self._threads.run(self._find_bounds, self._pace.federations)
                self._ring_all([device for device in busy if device in self._bells])
            except Exception:
                _log.exception("looking for tasks of waiting devices failed")


def _ring(bell: asyncio.Future[None]) -> None:
    if not bell.done():
        bell.set_result(None)


class LastSeen:
    """When devices were last heard of, and when they were given their tasks."""

    def __init__(self, context: Context, threads: ThreadPools) -> None:
        self._context, self._threads = context, threads
        self._times: dict[str, float] = {}
        self._flusher: asyncio.Task[None] | None = None

    def note(self, device: str) -> None:
        """A device was heard of now."""
        self._times[device] = self._context.now()

    async def start(self) -> None:
        """Begin to write."""
        self._flusher = asyncio.create_task(self._flush_for_ever())

    async def stop(self) -> None:
        """Write what is left."""
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
            _log.exception("noting when devices were heard of failed")
            self._times = times | self._times
            for task, at in handed.items():
                self._context.note_handed(task, at)

    def _write(self, times: dict[str, float], handed: dict[str, float], corrections: dict[str, str]) -> None:
        if times:
            self._context.store.devices.mark_seen(times)
        if handed:
            self._context.store.tasks.mark_handed_out(handed)
        self._context.store.devices.set_corrections(corrections)
