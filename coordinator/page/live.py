"""What has changed since the last look, to everybody who watches: server-sent events.

However many watch a federation, it is looked once a second (less often where a look takes long), and only while
somebody watches. A connection begins with a snapshot of everything and goes on with changes, so one that was lost is
simply made again: there is nothing to replay. A beat says that the last look worked; where none comes, the page is old.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection
from typing import Any

from coordinator import federations
from coordinator.allowances import retry_after
from coordinator.context import Context
from coordinator.page.fleet import COLUMNS, Fleet
from coordinator.problems import ProblemError
from coordinator.routes.conversion import federation_view, round_view
from coordinator.storage.records import Federation, Pulse, Round, TaskState
from coordinator.threads import Threads

__all__ = ["Live"]

_log = logging.getLogger("coordinator.live")

_LOOK_SECONDS = 1.0
_LEAST_REST = 5.0
"""A look is followed by so many times its own duration of rest."""
_BEAT_SECONDS = 2.0
_MOST_WATCHERS = 200
_MOST_WAITING = 64
"""Events that wait for a connection that takes none; then it is closed, and may come again."""

_Queue = asyncio.Queue[bytes | None]


class Live:
    """The watched federations of this process."""

    def __init__(self, context: Context, threads: Threads, uploading: Callable[[], Collection[str]]) -> None:
        self._context, self._threads, self._uploading = context, threads, uploading
        self._watches: dict[str, _Watch] = {}
        self._closed = False

    async def events(self, name: str) -> AsyncIterator[bytes]:
        """Give the events of a federation, until nobody takes them or the process stops."""
        if self._closed or sum(len(watch.queues) for watch in self._watches.values()) >= _MOST_WATCHERS:
            raise ProblemError(503, "nobody else can watch now", fix="Come again later.", headers=retry_after(5))
        watch = self._watches.get(name)
        if watch is None:
            watch = self._watches[name] = _Watch(self._context, name, self._threads, self._uploading)
        try:
            first, queue = await watch.join()
            return self._given(watch, first, queue)
        except BaseException:
            self._forget(watch)
            raise

    async def _given(self, watch: "_Watch", first: bytes, queue: _Queue) -> AsyncIterator[bytes]:
        try:
            yield first
            while not self._closed and (event := await queue.get()) is not None:
                yield event
        finally:
            watch.queues.discard(queue)
            self._forget(watch)

    def _forget(self, watch: "_Watch") -> None:
        if not watch.queues and self._watches.get(watch.name) is watch:
            del self._watches[watch.name]
            watch.stop()

    def close(self) -> None:
        """End every connection."""
        self._closed = True
        for watch in self._watches.values():
            watch.stop()
            for queue in watch.queues:
                _put(queue, None)


class _Watch:
    """One federation that somebody watches."""

    def __init__(self, context: Context, name: str, threads: Threads, uploading: Callable[[], Collection[str]]) -> None:
        self.name, self.queues = name, set[_Queue]()
        self._threads, self._uploading = threads, uploading
        self._view = _View(context, name)
        self._turn = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None
        self._sent_at = 0.0

    async def join(self) -> tuple[bytes, _Queue]:
        """Return everything as it is now, and where what changes after that will be."""
        queue: _Queue = asyncio.Queue(_MOST_WAITING)
        async with self._turn:
            await self._look()
            snapshot = await self._threads.run_long(lambda: _event("snapshot", self._view.everything()))
            self.queues.add(queue)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_for_ever())
        return snapshot, queue

    def stop(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()

    async def _look_for_ever(self) -> None:
        while True:
            began = time.monotonic()
            with contextlib.suppress(Exception):  # it was logged; without a beat, the pages say that they are old
                async with self._turn:
                    await self._look()
            took = time.monotonic() - began
            await asyncio.sleep(max(_LOOK_SECONDS, _LEAST_REST * took))

    async def _look(self) -> None:
        """Look once, and tell everybody what is new."""
        try:
            news = await self._threads.run_long(self._view.look, frozenset(self._uploading()))
        except ProblemError:
            raise
        except Exception:
            _log.exception("looking failed", extra={"federation": self.name})
            raise
        now = time.monotonic()
        if news.keys() - {"now"}:
            self._tell(_event("change", news))
        elif now >= self._sent_at + _BEAT_SECONDS:
            self._tell(_event("beat", {"now": news["now"]}))

    def _tell(self, event: bytes) -> None:
        self._sent_at = time.monotonic()
        for queue in list(self.queues):
            if not _put(queue, event):
                self.queues.discard(queue)


class _View:
    """A federation as it was when it was looked last. Used by one thread at a time."""

    def __init__(self, context: Context, name: str) -> None:
        self._context, self._name = context, name
        self._fleet = Fleet(context, name)
        self._rounds: dict[int, Round] = {}
        self._known: dict[str, Any] = {}

    def look(self, uploading: Collection[str]) -> dict[str, Any]:
        """Look again, and return what is other than before, with the time."""
        federation = federations.existing(self._context, self._name)
        rows, gone = self._fleet.look(federation, uploading)
        rounds = self._new_rounds()
        latest = self._rounds[max(self._rounds)] if self._rounds else None
        overview = federations.overview(self._context, federation)
        seen = {
            "federation": federation_view(overview, federation).model_dump(),
            "progress": None if latest is None else self._progress(federation, latest, overview.wanted, uploading),
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
        found = self._context.store.rounds(self._name, since=max(self._rounds, default=0))
        changed = [one for one in found if self._rounds.get(one.number) != one]
        self._rounds |= {one.number: one for one in changed}
        return changed

    def _progress(
        self, federation: Federation, latest: Round, wanted: int, uploading: Collection[str]
    ) -> dict[str, Any]:
        ended = self._context.store.ended(self._name, latest.number)
        counts = _open_tasks(self._fleet.pulses, latest.number, uploading)
        return {
            "round": latest.number,
            "state": str(latest.state),
            "personal": self._context.library.settings(federation).is_personal(latest.number),
            "selected": self._context.store.count_tasks(self._name, latest.number),
            **counts,
            "arrived": ended.done,
            "refused": ended.refused,
            "late": ended.late,
            "missing": ended.expired,
            "wanted": wanted,
            "opened_at": latest.opened_at,
            "deadline_at": latest.deadline_at,
            "closed_because": latest.closed_because,
        }


def _open_tasks(pulses: Collection[Pulse], number: int, uploading: Collection[str]) -> dict[str, int]:
    """Count the open tasks of a round by what their devices do."""
    at_work = [pulse for pulse in pulses if pulse.state is TaskState.OPEN and pulse.round == number]
    handed = [pulse for pulse in at_work if pulse.handed_at is not None]
    sending = sum(pulse.device in uploading for pulse in handed)
    return {"waiting": len(at_work) - len(handed), "training": len(handed) - sending, "uploading": sending}


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
