"""Forgetting what no round needs any more: a little at a time, beside everything else.

A round of a thousand updates leaves as many bodies. Dropped at once, they would keep the next round from opening, or
its first updates from being entered. A crash in between leaves files, never a hole: the next round's turn finds them.
"""

import logging
import threading
from queue import SimpleQueue

from coordinator.context import Context

__all__ = ["Tidying", "tidy"]

_LOG = logging.getLogger(__name__)
_AT_ONCE = 64
_PAUSE_SECONDS = 0.2


def tidy(context: Context, federation: str, number: int, stop: threading.Event | None = None) -> None:
    """Forget what was kept for a round that is done; with a `stop`, in small steps, until it is set.

    What the next round may use again, another worker may be about to name: weights stay one round longer than they
    must, masks and graphs, which come back more often, ten.
    """
    store, blobs = context.store, context.blobs
    unread = store.unread_updates(federation, before_round=number + 1)
    for start in range(0, len(unread), _AT_ONCE):
        some = unread[start : start + _AT_ONCE]
        blobs.drop_all(some)
        store.forget_updates(some)
        if stop is not None and stop.wait(_PAUSE_SECONDS):
            return
    for kinds, before in ((["weights", "extras"], number), (["mask", "graph"], number - 10)):
        blobs.drop_all(store.drop_artifacts(federation, before_round=before, kinds=kinds))


class Tidying:
    """A thread that tidies after rounds."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._asked: SimpleQueue[tuple[str, int] | None] = SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tidying", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the step that is under way."""
        self._stop.set()
        self._asked.put(None)
        self._thread.join()

    def ask(self, federation: str, number: int) -> None:
        """Tidy after a round, soon."""
        self._asked.put((federation, number))

    def _run(self) -> None:
        while (asked := self._asked.get()) is not None and not self._stop.is_set():
            try:
                tidy(self._context, *asked, self._stop)
            except Exception:  # nothing is lost: the next round's turn finds what is left
                _LOG.exception("tidying failed", extra={"federation": asked[0], "round": asked[1]})
