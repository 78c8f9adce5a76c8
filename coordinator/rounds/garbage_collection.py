"""Garbage collection: drops what no round needs any more.

After a round its old artifacts and models go at once, and the bodies of its updates go a few at a time on a thread. A
round of a thousand updates leaves as many bodies: dropped at once, they would delay the opening of the next round, or
its first updates. A crash in between leaves files behind, but never a missing one: the next collection for the
federation, after a later round or at the next start, finds them.

The thread drops bodies of updates only. Their digests are unique, as each contains a task's id; masks and weights may
be named again at any moment, so they are dropped only where no plan is about to be stored.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from queue import SimpleQueue

from coordinator.rounds.context import Context
from coordinator.rounds.report import read_report
from coordinator.storage.records import Federation, Round

__all__ = ["GarbageCollector", "drop_old_artifacts", "drop_old_models", "drop_updates"]

_LOG = logging.getLogger(__name__)
_BATCH = 64
_LONGEST_PAUSE = 0.2
_MODELS_AT_ONCE = 16
_KEPT_ROUNDS = ((("weights", "extras"), 0), (("mask", "graph", "tensors"), 10))
"""Kinds of artifacts, and for how many rounds more they are kept."""


def drop_old_artifacts(context: Context, federation: str, number: int) -> None:
    """Drop the artifacts that no task needs after a round. Call it where no plan is about to be stored.

    Another worker may be about to name what the next round may use again: weights stay one round longer than they
    must; masks, graphs and names of tensors, which come back more often, ten.
    """
    for kinds, rounds in _KEPT_ROUNDS:
        dropped = context.store.artifacts.drop(federation, before_round=number - rounds, kinds=kinds)
        context.blobs.drop_all(dropped)


def drop_old_models(context: Context, federation: Federation) -> None:
    """Drop all models but the newest ones, the first and the best, after a round whose model is safely stored.

    What a task or the latest round still starts from stays, too. A failure is only logged: the next round drops more.
    """
    keep = context.repository.settings(federation).rounds.keep_models
    if keep is None:
        return
    try:
        unneeded = _unneeded_models(context.store.rounds.with_models(federation.id), keep)
        for start in range(0, len(unneeded), _MODELS_AT_ONCE):
            some = unneeded[start : start + _MODELS_AT_ONCE]
            context.store.artifacts.drop_models(federation.id, some, context.blobs.drop_all)
    except Exception:
        _LOG.exception("old models could not be dropped", extra={"federation": federation.id})


def _unneeded_models(done: Sequence[Round], keep: int) -> list[int]:
    """Return the rounds whose models go. Rounds with equal models keep or lose them together."""
    newest = list(dict.fromkeys(one.next_model for one in reversed(done)))[:keep]
    kept = {*newest, *(one.next_model for one in done if one.number == 0), *(one.model for one in done[-1:])}
    scores = [(accuracy, -one.number, one.next_model) for one in done if (accuracy := _accuracy(one)) is not None]
    if scores:
        kept.add(max(scores)[2])
    return [one.number for one in done if one.next_model not in kept]


def _accuracy(done: Round) -> float | None:
    return (read_report(done.report) or {}).get("accuracy")


def drop_updates(context: Context, federation: str, stop: threading.Event | None = None) -> None:
    """Drop the updates of rounds that are done. With `stop`, pause between batches, and return once it is set."""
    latest = context.store.rounds.latest(federation)
    if latest is None:
        return
    unneeded = context.store.artifacts.unneeded_updates(federation, before_round=latest.number + 1)
    for start in range(0, len(unneeded), _BATCH):
        began, batch = time.monotonic(), unneeded[start : start + _BATCH]
        context.blobs.drop_all(batch)
        context.store.artifacts.forget_updates(batch)
        pause = min(2 * (time.monotonic() - began), _LONGEST_PAUSE)
        if stop is not None and start + _BATCH < len(unneeded) and stop.wait(pause):
            return


class GarbageCollector:
    """A thread that drops the updates of federations."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._queue: SimpleQueue[str | None] = SimpleQueue()
        self._queued: set[str] = set()
        """Federations in the queue, each once: one turn does everything."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="garbage-collection", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the batch in progress."""
        self._stop.set()
        self._queue.put(None)
        self._thread.join()

    def request(self, federation: str) -> None:
        """Drop the updates of a federation soon."""
        if federation not in self._queued:
            self._queued.add(federation)
            self._queue.put(federation)

    def request_ended(self) -> None:
        """Request a collection for every federation that is over: it has no later round that would request one."""
        with contextlib.suppress(Exception):  # a database that does not answer is reported by the first move
            for federation in self._context.store.federations.ended():
                self.request(federation)

    def _run(self) -> None:
        while (federation := self._queue.get()) is not None and not self._stop.is_set():
            self._queued.discard(federation)  # before the work: what ends meanwhile needs another turn
            try:
                drop_updates(self._context, federation, self._stop)
            except Exception:  # nothing is lost: the next turn finds the rest
                _LOG.exception("garbage collection failed", extra={"federation": federation})
