"""The upload queue: checks incoming updates, stores them, and then acknowledges them.

Two threads check updates (digest, form, tensors, norm): one for those in memory, one for those in files, so that a
small one never waits behind a large one. Then one thread takes all that are ready, waits for the disk once for all of
them, and stores them in one transaction: that is how a small machine takes hundreds of updates a second without ever
acknowledging one that could be lost.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from coordinator.errors import CoordinatorError, ErrorReason, disk_full, is_disk_full
from coordinator.rounds.context import Context
from coordinator.rounds.upload_checks import CheckedUpdate, IncomingUpdate, UploadChecker, unknown_task
from coordinator.storage.blobs import Spooled
from coordinator.storage.records import Device, Task, Verdict
from edgefl.errors import EdgeFLError
from edgefl.values import Outcome, Receipt, Refusal, dumps

__all__ = ["UploadQueue", "refuse"]

_LOG = logging.getLogger(__name__)
_BATCH = 64
_FINAL_REJECTIONS = frozenset({Verdict.LATE, Verdict.CONFLICT, Verdict.UNKNOWN})
"""Verdicts after which no worker accepts the same update. After WAIT, another worker may be accepting it."""
_OUTCOMES = {Verdict.ACCEPTED: Outcome.ACCEPTED, Verdict.ALREADY: Outcome.ALREADY, Verdict.LATE: Outcome.LATE}


@dataclass(frozen=True, slots=True)
class _Arrival:
    """An update that arrived, and the future that waits for its verdict."""

    update: IncomingUpdate
    loop: asyncio.AbstractEventLoop
    outcome: "asyncio.Future[_Outcome]"


_Outcome = Verdict | Exception
_Entry = tuple[_Arrival, CheckedUpdate]
_Queue = SimpleQueue[_Arrival | None]


class UploadQueue:
    """Accepts updates."""

    def __init__(self, context: Context, *, accepted: Callable[[], None] = lambda: None) -> None:
        self._context, self._accepted = context, accepted
        self._checker = UploadChecker(context)
        self._small: _Queue = SimpleQueue()
        self._large: _Queue = SimpleQueue()
        self._ready: SimpleQueue[_Entry | None] = SimpleQueue()
        self._checkers = [
            threading.Thread(target=self._check_all, args=(queue,), name=name, daemon=True)
            for name, queue in (("check-small-uploads", self._small), ("check-large-uploads", self._large))
        ]
        self._writer = threading.Thread(target=self._store_all, name="store-uploads", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether its threads are running."""
        return all(thread.is_alive() for thread in (*self._checkers, self._writer))

    def start(self) -> None:
        """Start the threads."""
        for thread in (*self._checkers, self._writer):
            thread.start()

    def stop(self) -> None:
        """Store the updates in progress, then stop."""
        for queue in (self._small, self._large):
            queue.put(None)
        for thread in self._checkers:
            _join(thread)
        self._ready.put(None)
        _join(self._writer)

    async def deliver(
        self,
        device: Device,
        task_id: str,
        body: bytes | Path,
        arrived: int,
        *,
        grouped: bool = False,
        known: Task | None = None,
    ) -> Receipt:
        """Accept a device's update, which took `arrived` bytes on the network; it is durable when this returns. Raise
        `CoordinatorError` if it is rejected. `known` is the task as it was found before; it may have ended since."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Outcome] = loop.create_future()
        arrival = _Arrival(IncomingUpdate(device, task_id, body, arrived, grouped, known), loop, future)
        (self._large if isinstance(body, Path) else self._small).put(arrival)
        del arrival, body
        outcome = await future
        try:
            if isinstance(outcome, Exception):
                raise outcome
            return _receipt(task_id, outcome)
        finally:
            # An error holds the frames that it passed. If one of them held the error, both would stay in memory until
            # the next garbage collection, and the body with them.
            del future, outcome

    def _check_all(self, queue: _Queue) -> None:
        while (arrival := queue.get()) is not None:
            self._check_next(arrival)
            del arrival  # or its body would stay in memory until the next one arrives

    def _check_next(self, arrival: _Arrival) -> None:
        try:
            checked = self._checker.check(arrival.update)
        except Exception as error:
            if not isinstance(error, EdgeFLError):
                _LOG.exception("an update could not be checked")
            _answer([(arrival, _without_frames(error))])
            return
        if isinstance(checked, CheckedUpdate):
            self._ready.put((arrival, checked))
        else:
            _answer([(arrival, checked)])

    def _store_all(self) -> None:
        while self._store_ready():
            pass

    def _store_ready(self) -> bool:
        """Wait for a checked update, then store all that are ready; return whether there will be more."""
        batch = [self._ready.get()]
        while batch[-1] is not None and len(batch) < _BATCH and not self._ready.empty():
            batch.append(self._ready.get())
        entries = [entry for entry in batch if entry is not None]
        if entries:
            self._store(entries)
        return batch[-1] is not None

    def _store(self, entries: list[_Entry]) -> None:
        try:
            bodies = [_named(one.body, one.upload.update) for _, one in entries if one.body is not None]
            self._context.blobs.put_all(bodies + [one.mask for _, one in entries if one.mask is not None])
            verdicts = self._context.store.uploads.accept([one.upload for _, one in entries])
        except Exception as error:
            _LOG.exception("updates could not be stored")
            _answer([(arrival, _not_stored(error)) for arrival, _ in entries])
            return
        _answer([(arrival, verdict) for (arrival, _), verdict in zip(entries, verdicts, strict=True)])
        for (_, checked), verdict in zip(entries, verdicts, strict=True):
            if verdict is Verdict.ACCEPTED and checked.lesson is not None:
                self._context.corrections.note_round(checked.upload.device, *checked.lesson)
            if verdict in _FINAL_REJECTIONS:  # an earlier attempt may have stored its body
                with contextlib.suppress(Exception):  # an extra body does no harm
                    self._context.blobs.drop(checked.upload.update)
        if Verdict.ACCEPTED in verdicts:
            self._accepted()


def _join(thread: threading.Thread) -> None:
    if thread.ident is not None:  # it was started
        thread.join()


def _answer(answers: Sequence[tuple[_Arrival, _Outcome]]) -> None:
    """Answer those who wait, all of an event loop at once, so that it is woken only once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Arrival, _Outcome]]] = {}
    for arrival, outcome in answers:
        by_loop.setdefault(arrival.loop, []).append((arrival, outcome))
    for loop, group in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_resolve, group)


def _resolve(answers: Sequence[tuple[_Arrival, _Outcome]]) -> None:
    for arrival, outcome in answers:
        if not arrival.outcome.done():  # the caller has not disconnected
            arrival.outcome.set_result(outcome)


def _without_frames(error: Exception) -> Exception:
    """Return an error without the frames of the thread that raised it: they hold the update and its tensors."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def refuse(context: Context, device: Device, task_id: str, refusal: Refusal) -> Receipt:
    """Accept a device's refusal of a task."""
    verdict = context.store.uploads.refuse(task_id, device.id, dumps(refusal), context.now())
    federation = context.repository.federation(device.federation)
    if verdict is Verdict.ACCEPTED and federation is not None:
        half_life = context.repository.settings(federation).memory_seconds
        context.corrections.note_refusal(device.id, refusal.reason, half_life)
    return _receipt(task_id, verdict)


def _receipt(task_id: str, verdict: Verdict) -> Receipt:
    if verdict is Verdict.UNKNOWN:
        raise unknown_task(task_id)
    if verdict is Verdict.CONFLICT:
        raise CoordinatorError(
            ErrorReason.CONFLICT,
            f"task {task_id!r} has already ended, with another report",
            fix="Drop this one; the first report counts.",
        )
    if verdict is Verdict.WAIT:
        raise CoordinatorError(
            ErrorReason.UNAVAILABLE,
            "a new model is being aggregated",
            fix="Send it again in a second.",
            retry_seconds=1,
        )
    return Receipt(task_id=task_id, outcome=_OUTCOMES[verdict])


def _not_stored(error: Exception) -> CoordinatorError:
    if is_disk_full(error):
        return disk_full()
    return CoordinatorError(
        ErrorReason.UNAVAILABLE,
        f"the update could not be stored ({type(error).__name__})",
        fix="Send it again later; the coordinator's log has the reason.",
        retry_seconds=5,
    )


def _named(body: bytes | Path, digest: str) -> bytes | Spooled:
    return Spooled(body, digest) if isinstance(body, Path) else body
