"""Live updates: the changes of a federation as server-sent events, for everyone who watches it.

However many watch a federation, it is read once a second (less often where that takes long), and only while somebody
watches. A connection begins with a snapshot of everything and goes on with changes, so a lost one is simply opened
again: there is nothing to replay. A beat says that the last read worked; without beats, the page is out of date. A
read that fails ends every connection, so that nobody goes on with outdated figures.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable, Collection
from typing import Any

from coordinator.errors import CoordinatorError, ErrorReason
from coordinator.page.live_snapshot import LiveJson, LiveSnapshot
from coordinator.rounds.context import Context
from coordinator.thread_pools import ThreadPools

__all__ = ["LiveUpdates"]

_log = logging.getLogger("coordinator.live")

_REFRESH_SECONDS = 1.0
_REST = 5.0
"""A refresh is followed by this many times its own duration of rest."""
_LONGEST_REST = 3.0
"""Seconds: a page that hears nothing for six says that it is out of date."""
_BEAT_SECONDS = 2.0
_MOST_WATCHERS = 200
_MOST_QUEUED = 64
"""Events queued for a connection that reads none; then it is closed, and may be opened again."""

_Queue = asyncio.Queue[bytes | None]


class LiveUpdates:
    """The watched federations of this process."""

    def __init__(
        self, context: Context, threads: ThreadPools, uploading: Callable[[], Collection[str]], written: LiveJson
    ) -> None:
        self._context, self._threads, self._uploading, self._written = context, threads, uploading, written
        self._watches: dict[str, _Watch] = {}
        self._closed = False

    @property
    def watchers(self) -> int:
        """Number of connections, open or opening."""
        return sum(len(watch.queues) for watch in self._watches.values())

    async def events(self, name: str) -> AsyncGenerator[bytes, None]:
        """Return the events of a federation, until the caller stops reading or the process stops."""
        if self._closed or self.watchers >= _MOST_WATCHERS:
            raise CoordinatorError(
                ErrorReason.UNAVAILABLE, "too many are watching already", fix="Try again later.", retry_seconds=5
            )
        watch = self._watches.get(name)
        if watch is None:
            snapshot = LiveSnapshot(self._context, name, self._written)
            watch = self._watches[name] = _Watch(name, snapshot, self._threads, self._uploading, self._forget)
        queue: _Queue = asyncio.Queue(_MOST_QUEUED)
        return self._stream(watch, await watch.join(queue), queue)

    async def _stream(self, watch: "_Watch", first: bytes, queue: _Queue) -> AsyncGenerator[bytes, None]:
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
        name: str,
        snapshot: LiveSnapshot,
        threads: ThreadPools,
        uploading: Callable[[], Collection[str]],
        forget: Callable[["_Watch"], None],
    ) -> None:
        self.name, self.queues = name, set[_Queue]()
        self._snapshot, self._threads, self._uploading, self._forget = snapshot, threads, uploading, forget
        self._lock = asyncio.Lock()
        self._refresher: asyncio.Task[None] | None = None
        self._refreshed_at = self._sent_at = float("-inf")
        self._first_event: bytes | None = None
        """The snapshot as of the last refresh, for all who come before the next."""

    async def join(self, queue: _Queue) -> bytes:
        """Return everything as it is now; later changes will be in the queue."""
        self.queues.add(queue)  # before the first wait, so that nobody else ends the watch meanwhile
        try:
            async with self._lock:
                if time.monotonic() >= self._refreshed_at + _REFRESH_SECONDS or self._first_event is None:
                    await self._refresh()
                    self._first_event = await self._threads.watch(
                        lambda: _event("snapshot", self._snapshot.everything())
                    )
                while not queue.empty():  # the snapshot has it
                    queue.get_nowait()
                first = self._first_event
        except BaseException:
            self.leave(queue)
            raise
        if self._refresher is None or self._refresher.done():
            self._refresher = asyncio.create_task(self._refresh_for_ever())
        return first

    def leave(self, queue: _Queue) -> None:
        """Remove a connection; with the last one, the watch is over."""
        self.queues.discard(queue)
        if not self.queues:
            self._forget(self)
            if self._refresher is not None:
                self._refresher.cancel()

    def end(self) -> None:
        """End every connection."""
        for queue in list(self.queues):
            _put(queue, None)
            self.leave(queue)

    async def _refresh_for_ever(self) -> None:
        while True:
            began = time.monotonic()
            try:
                async with self._lock:
                    await self._refresh()
            except Exception:
                _log.exception("reading a watched federation failed", extra={"federation": self.name})
                self.end()
                return
            took = time.monotonic() - began
            await asyncio.sleep(min(_LONGEST_REST, max(_REFRESH_SECONDS, _REST * took)))

    async def _refresh(self) -> None:
        """Read the federation once, and send what has changed to everyone."""
        event, has_changes = await self._threads.watch(self._next_event, frozenset(self._uploading()))
        self._refreshed_at = time.monotonic()
        if has_changes:
            self._first_event = None
        if has_changes or self._refreshed_at >= self._sent_at + _BEAT_SECONDS:
            self._sent_at = self._refreshed_at
            for queue in list(self.queues):
                if not _put(queue, event):
                    self.leave(queue)

    def _next_event(self, uploading: Collection[str]) -> tuple[bytes, bool]:
        changes = self._snapshot.refresh(uploading)
        has_changes = len(changes) > 1
        return _event("change" if has_changes else "beat", changes), has_changes


def _event(kind: str, data: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data, separators=(',', ':'), allow_nan=False)}\n\n".encode()


def _put(queue: _Queue, event: bytes | None) -> bool:
    """Queue an event for a connection; one that no longer reads is ended, and may be opened again."""
    try:
        queue.put_nowait(event)
    except asyncio.QueueFull:
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)
        return False
    return True
