"""Forgetting updates that no round needs any more: a little at a time, beside everything else.

A round of a thousand updates leaves as many bodies. Dropped at once, they would keep the next round from opening, or
its first updates from being entered. A crash in between leaves files, never a hole: whoever tidies after the
federation again finds them, a later round or the next start. Only bodies of updates are dropped here. Their digests are
theirs alone, as a task's id is in each; masks and weights may be named again at any moment, and are the driver's.
"""

import logging
import threading
import time
from queue import SimpleQueue

from coordinator.rounds.context import Context

__all__ = ["GarbageCollector", "tidy"]

_LOG = logging.getLogger(__name__)
_AT_ONCE = 64
_LONGEST_PAUSE = 0.2


def tidy(context: Context, federation: str, stop: threading.Event | None = None) -> None:
    """Forget the updates of rounds that are done; with a `stop`, with pauses, until it is set."""
    latest = context.store.rounds.latest(federation)
    if latest is None:
        return
    unread = context.store.artifacts.unneeded_updates(federation, before_round=latest.number + 1)
    for start in range(0, len(unread), _AT_ONCE):
        began, some = time.monotonic(), unread[start : start + _AT_ONCE]
        context.blobs.drop_all(some)
        context.store.artifacts.forget_updates(some)
        pause = min(2 * (time.monotonic() - began), _LONGEST_PAUSE)
        if stop is not None and start + _AT_ONCE < len(unread) and stop.wait(pause):
            return


class GarbageCollector:
    """A thread that tidies after rounds."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._queue: SimpleQueue[str | None] = SimpleQueue()
        self._asked: set[str] = set()
        """Federations in the queue, each once: a turn does all that there is to do."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tidying", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the step that is under way."""
        self._stop.set()
        self._queue.put(None)
        self._thread.join()

    def ask(self, federation: str) -> None:
        """Tidy after a federation's rounds, soon."""
        if federation not in self._asked:
            self._asked.add(federation)
            self._queue.put(federation)

    def _run(self) -> None:
        while (federation := self._queue.get()) is not None and not self._stop.is_set():
            self._asked.discard(federation)  # before it is done: what ends meanwhile is another turn's
            try:
                tidy(self._context, federation, self._stop)
            except Exception:  # nothing is lost: the next turn finds what is left
                _LOG.exception("tidying failed", extra={"federation": federation})
