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
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue

from coordinator.errors import CoordinatorError, ErrorReason
from coordinator.rounds.context import Context
from coordinator.rounds.stored_updates import client_update_of
from coordinator.storage.blobs import Spooled
from coordinator.storage.records import Device, Federation, Task, TaskState, Upload, Verdict
from coordinator.storage.repository import LruCache
from edgefl.errors import WireFormatError
from edgefl.local_rules import changes_model
from edgefl.strategies import ClientUpdate, check_personal, part_norm
from edgefl.values import (
    ClientPlan,
    LocalResult,
    Outcome,
    Prediction,
    Receipt,
    Refusal,
    Telemetry,
    digest_of,
    dumps,
)
from edgefl.wire import ResultBody, decode_result, encode_mask
from edgefl.wire.byte_shuffle import ungroup

__all__ = ["UploadQueue", "own_task", "refuse"]

_LOG = logging.getLogger(__name__)
_BATCH = 64
_FINAL_REJECTIONS = frozenset({Verdict.LATE, Verdict.CONFLICT, Verdict.UNKNOWN})
"""Verdicts after which no worker accepts the same update. After WAIT, another worker may be accepting it."""
_OUTCOMES = {Verdict.ACCEPTED: Outcome.ACCEPTED, Verdict.ALREADY: Outcome.ALREADY, Verdict.LATE: Outcome.LATE}


@dataclass(frozen=True, slots=True)
class _Arrival:
    """An update that arrived, and the future that waits for its verdict."""

    device: Device
    task: str
    body: bytes | Path
    arrived: int
    """Bytes that it took on the network."""
    grouped: bool
    """Whether the body is still grouped by planes."""
    loop: asyncio.AbstractEventLoop
    verdict: "asyncio.Future[Verdict]"


@dataclass(frozen=True, slots=True)
class _Checked:
    """An update that passed the checks."""

    arrival: _Arrival
    upload: Upload
    body: bytes | Path | None
    """None if the update is late: its result is kept, its tensors are not."""
    mask: bytes | None
    lesson: tuple[Prediction, Telemetry, float] | None = None
    """What was predicted, what was measured, and the half-life of the lesson, if plans adapt."""


_Queue = SimpleQueue[_Arrival | None]


class UploadQueue:
    """Accepts updates."""

    def __init__(self, context: Context, *, accepted: Callable[[], None] = lambda: None) -> None:
        self._context, self._accepted = context, accepted
        self._norms = LruCache(1024)
        self._small: _Queue = SimpleQueue()
        self._large: _Queue = SimpleQueue()
        self._ready: SimpleQueue[_Checked | None] = SimpleQueue()
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
        self, device: Device, task_id: str, body: bytes | Path, arrived: int, *, grouped: bool = False
    ) -> Receipt:
        """Accept a device's update, which took `arrived` bytes on the network; it is durable when this returns. Raise
        `CoordinatorError` if it is rejected."""
        loop = asyncio.get_running_loop()
        arrival = _Arrival(device, task_id, body, arrived, grouped, loop, loop.create_future())
        (self._large if isinstance(body, Path) else self._small).put(arrival)
        return _receipt(task_id, await arrival.verdict)

    def _check_all(self, queue: _Queue) -> None:
        while (arrival := queue.get()) is not None:
            self._check_next(arrival)
            del arrival  # or its body would stay in memory until the next one arrives

    def _check_next(self, arrival: _Arrival) -> None:
        try:
            checked = self._check(arrival)
        except Exception as error:
            _answer([(arrival, error)])
            return
        if isinstance(checked, _Checked):
            self._ready.put(checked)
        else:
            _answer([(arrival, checked)])

    def _check(self, arrival: _Arrival) -> _Checked | Verdict:
        context, device, body = self._context, arrival.device, arrival.body
        task = own_task(context, device, arrival.task)
        federation = context.library.federation(task.federation)
        if federation is None:
            raise _unknown_task(task.id)
        settings = context.library.settings(federation)
        _check_size(body, settings.limits.most_bytes)
        data = body.read_bytes() if isinstance(body, Path) else body
        if arrival.grouped:
            data = ungroup(data)
            body = _kept(body, data)
        digest = digest_of(data)
        if task.state in (TaskState.DONE, TaskState.REFUSED):
            return Verdict.ALREADY if task.update == digest else Verdict.CONFLICT
        report = decode_result(data, context.library.bundle(federation).graph, limit=settings.limits.most_bytes)
        plan = context.library.plan(task)
        _check_task(task, plan, report)
        late = task.state is not TaskState.OPEN
        result = _with_arrived(report.result, arrival.arrived)
        if not late:
            self._check_tensors(federation, task, report)
            context.library.remember_result(digest, result)
        mask = None if report.next_mask is None or late else encode_mask(report.next_mask)
        upload = Upload(
            task=task.id,
            device=device.id,
            update=digest,
            result=dumps(result),
            samples=result.samples,
            at=context.now(),
            next_mask=None if mask is None else digest_of(mask),
            keeps_mask=not changes_model(plan.rule),
            buffered=settings.buffered,
            most_staleness=settings.buffering.most_staleness,
        )
        if plan.predicted is None or not settings.budget.adapt:
            return _Checked(arrival, upload, None if late else body, mask)
        lesson = (plan.predicted, result.telemetry, settings.memory_seconds)
        return _Checked(arrival, upload, None if late else body, mask, lesson)

    def _check_tensors(self, federation: Federation, task: Task, report: ResultBody) -> None:
        start = self._context.library.start_of(task.federation, task.round)
        if start is None:
            raise _unknown_task(task.id)
        client_update = client_update_of(self._context, federation, task, start, report)
        if self._context.library.settings(federation).is_personal(task.round):
            check_personal(client_update)
            return
        strategy = self._context.library.strategy(federation)
        strategy.check(client_update)
        most = self._context.library.settings(federation).limits.most_movement
        if most is None:
            return
        own = self._norms.get((start, client_update.mask.digest), lambda: _norm(client_update))
        moved = strategy.movement(client_update)
        if not moved <= most * own:
            raise WireFormatError(
                f"the update moves the model by {moved:.3g}, more than {most:g} times its norm, {most * own:.3g}",
                fix="Train with a lower learning rate, or ask the operator to raise limits.most_movement.",
            )

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

    def _store(self, entries: list[_Checked]) -> None:
        try:
            bodies = [_named(entry.body, entry.upload.update) for entry in entries if entry.body is not None]
            self._context.blobs.put_all(bodies + [entry.mask for entry in entries if entry.mask is not None])
            verdicts = self._context.store.uploads.accept([entry.upload for entry in entries])
        except Exception as error:
            _LOG.exception("updates could not be stored")
            _answer([(entry.arrival, _not_stored(error)) for entry in entries])
            return
        _answer([(entry.arrival, verdict) for entry, verdict in zip(entries, verdicts, strict=True)])
        for entry, verdict in zip(entries, verdicts, strict=True):
            if verdict is Verdict.ACCEPTED and entry.lesson is not None:
                self._context.corrections.note_round(entry.upload.device, *entry.lesson)
            if verdict in _FINAL_REJECTIONS:  # an earlier attempt may have stored its body
                with contextlib.suppress(Exception):  # an extra body does no harm
                    self._context.blobs.drop(entry.upload.update)
        if Verdict.ACCEPTED in verdicts:
            self._accepted()


def _join(thread: threading.Thread) -> None:
    if thread.ident is not None:  # it was started
        thread.join()


def _answer(answers: Sequence[tuple[_Arrival, Verdict | Exception]]) -> None:
    """Answer those who wait, all of an event loop at once, so that it is woken only once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Arrival, Verdict | Exception]]] = {}
    for arrival, outcome in answers:
        by_loop.setdefault(arrival.loop, []).append((arrival, outcome))
    for loop, group in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_resolve, group)


def _resolve(answers: Sequence[tuple[_Arrival, Verdict | Exception]]) -> None:
    for arrival, outcome in answers:
        if arrival.verdict.done():  # the caller has disconnected
            continue
        if isinstance(outcome, Exception):
            arrival.verdict.set_exception(outcome)
        else:
            arrival.verdict.set_result(outcome)


def refuse(context: Context, device: Device, task_id: str, refusal: Refusal) -> Receipt:
    """Accept a device's refusal of a task."""
    verdict = context.store.uploads.refuse(task_id, device.id, dumps(refusal), context.now())
    federation = context.library.federation(device.federation)
    if verdict is Verdict.ACCEPTED and federation is not None:
        half_life = context.library.settings(federation).memory_seconds
        context.corrections.note_refusal(device.id, refusal.reason, half_life)
    return _receipt(task_id, verdict)


def own_task(context: Context, device: Device, task_id: str) -> Task:
    """Return a task of this device. Raise `CoordinatorError` if it does not exist."""
    task = context.store.tasks.get(task_id)
    if task is None or task.device != device.id:
        raise _unknown_task(task_id)
    return task


def _unknown_task(task_id: str) -> CoordinatorError:
    """Return the error about a task that does not exist, or is another device's."""
    return CoordinatorError(
        ErrorReason.NOT_FOUND, f"this device has no task {task_id!r}", fix="Drop it and ask for the next task."
    )


def _receipt(task_id: str, verdict: Verdict) -> Receipt:
    if verdict is Verdict.UNKNOWN:
        raise _unknown_task(task_id)
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
    return CoordinatorError(
        ErrorReason.UNAVAILABLE,
        f"the update could not be stored ({type(error).__name__})",
        fix="Send it again later; the coordinator's log has the reason.",
        retry_seconds=5,
    )


def _check_task(task: Task, plan: ClientPlan, report: ResultBody) -> None:
    """Refuse a report of another task."""
    reported = (report.result.task_id, report.result.device_id, report.result.round, report.mask)
    expected = (task.id, task.device, task.round, plan.mask)
    for name, one, other in zip(("task", "device", "round", "mask"), reported, expected, strict=True):
        if one != other:
            raise WireFormatError(
                f"the result is of {name} {str(one)[:80]!r}, but {str(other)!r} was expected",
                fix="Send the result of this task.",
            )


def _with_arrived(result: LocalResult, arrived: int) -> LocalResult:
    """Add the upload itself to the bytes sent: the device cannot count it before it is sent."""
    telemetry = result.telemetry
    transfer = replace(telemetry.transfer, up_bytes=telemetry.transfer.up_bytes + arrived)
    return replace(result, telemetry=replace(telemetry, transfer=transfer))


def _check_size(body: bytes | Path, most: int) -> None:
    size = body.stat().st_size if isinstance(body, Path) else len(body)
    if size > most:
        raise CoordinatorError(
            ErrorReason.TOO_LARGE,
            f"the update has {size} bytes, but {most} are allowed",
            fix="Send less, or ask the operator for a higher limit.",
        )


def _kept(body: bytes | Path, data: bytes) -> bytes | Path:
    """Replace the data of a body where it is: in memory, or in its file."""
    if not isinstance(body, Path):
        return data
    body.write_bytes(data)
    return body


def _named(body: bytes | Path, digest: str) -> bytes | Spooled:
    return Spooled(body, digest) if isinstance(body, Path) else body


def _norm(client_update: ClientUpdate) -> float:
    """Return the norm of the device's submodel, at least 1: a model may begin with zeros."""
    return max(1.0, part_norm(client_update.mask, client_update.base))
