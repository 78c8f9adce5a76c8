"""What has changed since the last look, to everybody who watches: server-sent events.

However many watch a federation, it is looked once a second (less often where a look takes long), and only while
somebody watches. A connection begins with a snapshot of everything and goes on with changes, so one that was lost is
simply made again: there is nothing to replay. A beat says that the last look worked; where none comes, the page is old.
A look that fails ends every connection, so that nobody goes on with what is no longer known.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from coordinator.federations import lifecycle
from coordinator.http.error_handlers import ProblemError
from coordinator.http.rate_limits import retry_after
from coordinator.http.routes.conversion import federation_view, round_view
from coordinator.page.device_rows import COLUMNS, DeviceRows
from coordinator.rounds.context import Context
from coordinator.storage.records import Pulse, Round, TaskState
from coordinator.storage.thread_pools import ThreadPools

__all__ = ["Events", "Live"]

_log = logging.getLogger("coordinator.live")

_LOOK_SECONDS = 1.0
_REST = 5.0
"""A look is followed by so many times its own duration of rest."""
_LONGEST_REST = 3.0
"""Seconds: a page that hears nothing for six calls itself old."""
_BEAT_SECONDS = 2.0
_MOST_WATCHERS = 200
_MOST_WAITING = 64
"""Events that wait for a connection that takes none; then it is closed, and may come again."""

_Queue = asyncio.Queue[bytes | None]


class Live:
    """The watched federations of this process."""

    def __init__(self, context: Context, threads: ThreadPools, uploading: Callable[[], Collection[str]]) -> None:
        self._context, self._threads, self._uploading = context, threads, uploading
        self._watches: dict[str, _Watch] = {}
        self._closed = False

    @property
    def watchers(self) -> int:
        """How many watch, or are about to."""
        return sum(len(watch.queues) for watch in self._watches.values())

    async def events(self, name: str) -> AsyncIterator[bytes]:
        """Return the events of a federation, until nobody takes them or the process stops."""
        if self._closed or self.watchers >= _MOST_WATCHERS:
            raise ProblemError(503, "nobody else can watch now", fix="Come again later.", headers=retry_after(5))
        watch = self._watches.get(name)
        if watch is None:
            watch = self._watches[name] = _Watch(self._context, name, self._threads, self._uploading, self._forget)
        queue: _Queue = asyncio.Queue(_MOST_WAITING)
        return self._given(watch, await watch.join(queue), queue)

    async def _given(self, watch: "_Watch", first: bytes, queue: _Queue) -> AsyncIterator[bytes]:
        try:
            yield first
            while not self._closed and (event := await queue.get()) is not None:
                yield event
        finally:
            watch.leave(queue)

    def _forget(self, watch: "_Watch") -> None:
        if self._watches.get(watch.name) is watch:
            del self._watches[watch.name]

    def close(self) -> None:
        """End every connection."""
        self._closed = True
        for watch in list(self._watches.values()):
            watch.end()


class _Watch:
    """One federation that somebody watches."""

    def __init__(
        self,
        context: Context,
        name: str,
        threads: ThreadPools,
        uploading: Callable[[], Collection[str]],
        forget: Callable[["_Watch"], None],
    ) -> None:
        self.name, self.queues = name, set[_Queue]()
        self._threads, self._uploading, self._forget = threads, uploading, forget
        self._view = _View(context, name)
        self._turn = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None
        self._looked_at = self._sent_at = float("-inf")
        self._snapshot: bytes | None = None
        """As of the last look, for all who come before the next."""

    async def join(self, queue: _Queue) -> bytes:
        """Return everything as it is now; what changes after that will be in the queue."""
        self.queues.add(queue)  # before the first wait, so that nobody else ends the watch meanwhile
        try:
            async with self._turn:
                if time.monotonic() >= self._looked_at + _LOOK_SECONDS or self._snapshot is None:
                    await self._look()
                    self._snapshot = await self._threads.watch(lambda: _event("snapshot", self._view.everything()))
                while not queue.empty():  # the snapshot has it
                    queue.get_nowait()
                snapshot = self._snapshot
        except BaseException:
            self.leave(queue)
            raise
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_for_ever())
        return snapshot

    def leave(self, queue: _Queue) -> None:
        """Somebody has gone; with the last one, the watch is over."""
        self.queues.discard(queue)
        if not self.queues:
            self._forget(self)
            if self._looking is not None:
                self._looking.cancel()

    def end(self) -> None:
        """Tell everybody that nothing more will come."""
        for queue in list(self.queues):
            _put(queue, None)
            self.leave(queue)

    async def _look_for_ever(self) -> None:
        while True:
            began = time.monotonic()
            try:
                async with self._turn:
                    await self._look()
            except Exception:
                _log.exception("looking failed", extra={"federation": self.name})
                self.end()
                return
            took = time.monotonic() - began
            await asyncio.sleep(min(_LONGEST_REST, max(_LOOK_SECONDS, _REST * took)))

    async def _look(self) -> None:
        """Look once, and tell everybody what is new."""
        event, is_new = await self._threads.watch(self._seen, frozenset(self._uploading()))
        self._looked_at = time.monotonic()
        if is_new:
            self._snapshot = None
        if is_new or self._looked_at >= self._sent_at + _BEAT_SECONDS:
            self._sent_at = self._looked_at
            for queue in list(self.queues):
                if not _put(queue, event):
                    self.leave(queue)

    def _seen(self, uploading: Collection[str]) -> tuple[bytes, bool]:
        news = self._view.look(uploading)
        is_new = len(news) > 1
        return _event("change" if is_new else "beat", news), is_new


class _View:
    """A federation as it was when it was looked last. Used by one thread at a time."""

    def __init__(self, context: Context, name: str) -> None:
        self._context, self._name = context, name
        self._fleet = DeviceRows(context, name)
        self._rounds: dict[int, Round] = {}
        self._known: dict[str, Any] = {}

    def look(self, uploading: Collection[str]) -> dict[str, Any]:
        """Look again, and return what is other than before, with the time."""
        federation = lifecycle.existing(self._context, self._name)
        rows, gone = self._fleet.look(federation, uploading)
        rounds = self._new_rounds()
        latest = self._rounds[max(self._rounds)] if self._rounds else None
        overview = lifecycle.overview(self._context, federation)
        seen = {
            "federation": federation_view(overview, whole=True).model_dump(),
            "progress": None if latest is None else self._progress(overview, latest, uploading),
        }
        news: dict[str, Any] = {"now": self._context.now()}
        news |= {key: value for key, value in seen.items() if self._known.get(key, ...) != value}
        if rounds:
            news["rounds"] = [round_view(one).model_dump() for one in rounds]
        if rows or gone:
            news["fleet"] = {"rows": rows, "gone": gone}
        self._known = seen
        return news

    def everything(self) -> dict[str, Any]:
        """Return all that was seen."""
        rounds = [round_view(one).model_dump() for one in self._rounds.values()]
        fleet = {"columns": COLUMNS, "rows": list(self._fleet.rows.values())}
        return {"now": self._context.now(), **self._known, "rounds": rounds, "fleet": fleet}

    def _new_rounds(self) -> list[Round]:
        """Return the rounds that are new or other than before. What is before the last one never changes."""
        found = self._context.store.rounds.of(self._name, since=max(self._rounds, default=0))
        changed = [one for one in found if self._rounds.get(one.number) != one]
        self._rounds |= {one.number: one for one in changed}
        return changed

    def _progress(self, overview: lifecycle.Overview, latest: Round, uploading: Collection[str]) -> dict[str, Any]:
        settings = overview.settings
        personal = settings.is_personal(latest.number)
        ended = self._context.store.tasks.counts(self._name, latest.number)
        # A buffer takes updates of whatever round: everybody who is at work may fill it.
        counts = _at_work(self._fleet.pulses, None if settings.buffered and not personal else latest.number, uploading)
        return {
            "round": latest.number,
            "state": str(latest.state),
            "personal": personal,
            "selected": ended.done + ended.refused + ended.late + ended.expired + sum(counts.values()),
            **counts,
            "arrived": ended.done,
            "refused": ended.refused,
            "late": ended.late,
            "missing": ended.expired,
            "wanted": overview.wanted,
            "opened_at": latest.opened_at,
            "deadline_at": latest.deadline_at,
            "closed_because": latest.closed_because,
        }


def _at_work(pulses: Collection[Pulse], number: int | None, uploading: Collection[str]) -> dict[str, int]:
    """Count the open tasks, of one round or of all, by what their devices do."""
    open_ones = [pulse for pulse in pulses if pulse.state is TaskState.OPEN and number in (None, pulse.round)]
    handed = [pulse for pulse in open_ones if pulse.handed_at is not None]
    sending = sum(pulse.device in uploading for pulse in handed)
    return {"waiting": len(open_ones) - len(handed), "training": len(handed) - sending, "uploading": sending}


def _event(kind: str, data: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data, separators=(',', ':'), allow_nan=False)}\n\n".encode()


def _put(queue: _Queue, event: bytes | None) -> bool:
    """Give an event to a connection; one that takes nothing any more is told to end, and may come again."""
    try:
        queue.put_nowait(event)
    except asyncio.QueueFull:
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)
        return False
    return True


class Events(Response):
    """Events as they come, until there are no more or the caller has gone, which is noticed at once."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes]) -> None:
        # nginx would keep events back.
        super().__init__(b"", 200, {"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._events = events
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            while (event := await _next(self._events, gone)) is not None:
                await send({"type": "http.response.body", "body": event, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            await self._events.aclose()  # type: ignore[attr-defined]  # it is a generator


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _next(events: AsyncIterator[bytes], gone: "asyncio.Future[None]") -> bytes | None:
    """Return the next event; None after the last one, and if the caller goes first."""
    coming = asyncio.ensure_future(_first(events))
    waiting: list[asyncio.Future[Any]] = [coming, gone]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    if coming.done():
        return coming.result()
    coming.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await coming
    return None


async def _first(events: AsyncIterator[bytes]) -> bytes | None:
    return await anext(events, None)
