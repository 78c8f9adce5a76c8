"""Updates on their way in: looked at, put on disk, entered, acknowledged; in this order.

Looking at an update (digest, form, tensors, norm) is done by two threads: one for those in memory, one for those in
files, so that a small one never waits behind a large one, and polls share the interpreter with one of them at most.
Then one thread takes all that are ready, waits for the disk once for all of them, and enters them in one transaction:
that is how a small machine takes hundreds of updates a second without ever acknowledging one that could be lost.
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
from coordinator.rounds.stored_updates import update_of_task
from coordinator.storage.blobs import Spooled
from coordinator.storage.records import Device, Federation, Task, TaskState, Upload, Verdict
from edgefl.errors import WireFormatError
from edgefl.federation.cache import LruCache
from edgefl.local_rules import changes_model
from edgefl.strategies import ClientUpdate, check_personal, submodel_norm
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
_USELESS = frozenset({Verdict.LATE, Verdict.CONFLICT, Verdict.UNKNOWN})
"""Answers after which nobody will take the same update: what is told to come again, another worker may be taking."""
_OUTCOMES = {Verdict.ACCEPTED: Outcome.ACCEPTED, Verdict.ALREADY: Outcome.ALREADY, Verdict.LATE: Outcome.LATE}


@dataclass(frozen=True, slots=True)
class _Arrival:
    """An update that came, and who waits to hear what becomes of it."""

    device: Device
    task: str
    body: bytes | Path
    arrived: int
    """Bytes that came over the network for it."""
    grouped: bool
    """Whether the body is still grouped by planes."""
    loop: asyncio.AbstractEventLoop
    verdict: "asyncio.Future[Verdict]"


@dataclass(frozen=True, slots=True)
class _Checked:
    """An update that may be entered."""

    arrival: _Arrival
    upload: Upload
    body: bytes | Path | None
    """None where the update is late: its report is kept, its tensors are not."""
    mask: bytes | None
    lesson: tuple[Prediction, Telemetry, float] | None = None
    """What was predicted, what was measured, and how soon half of it is forgotten, if plans shall learn from it."""


_Queue = SimpleQueue[_Arrival | None]


class UploadQueue:
    """Takes updates."""

    def __init__(self, context: Context, *, accepted: Callable[[], None] = lambda: None) -> None:
        self._context, self._accepted = context, accepted
        self._norms: LruCache[tuple[str, str], float] = LruCache(1024)
        self._small: _Queue = SimpleQueue()
        self._large: _Queue = SimpleQueue()
        self._ready: SimpleQueue[_Checked | None] = SimpleQueue()
        self._looking = [
            threading.Thread(target=self._look_at_all, args=(queue,), name=name, daemon=True)
            for name, queue in (("intake-small", self._small), ("intake-large", self._large))
        ]
        self._entering = threading.Thread(target=self._enter_all, name="intake-entering", daemon=True)

    @property
    def alive(self) -> bool:
        """Whether updates are being entered."""
        return all(thread.is_alive() for thread in (*self._looking, self._entering))

    def start(self) -> None:
        """Begin to take updates."""
        for thread in (*self._looking, self._entering):
            thread.start()

    def stop(self) -> None:
        """Enter what is under way, then stop."""
        for queue in (self._small, self._large):
            queue.put(None)
        for thread in self._looking:
            _join(thread)
        self._ready.put(None)
        _join(self._entering)

    async def deliver(
        self, device: Device, task_id: str, body: bytes | Path, arrived: int, *, grouped: bool = False
    ) -> Receipt:
        """Take a device's update, for which so many bytes came; it is durable when this returns. Raises
        `CoordinatorError`."""
        loop = asyncio.get_running_loop()
        arrival = _Arrival(device, task_id, body, arrived, grouped, loop, loop.create_future())
        (self._large if isinstance(body, Path) else self._small).put(arrival)
        return _receipt(task_id, await arrival.verdict)

    def _look_at_all(self, queue: _Queue) -> None:
        while (arrival := queue.get()) is not None:
            self._take(arrival)
            del arrival  # or its body would stay in memory until the next one comes

    def _take(self, arrival: _Arrival) -> None:
        try:
            looked = self._look(arrival)
        except Exception as error:
            _answer([(arrival, error)])
            return
        if isinstance(looked, _Checked):
            self._ready.put(looked)
        else:
            _answer([(arrival, looked)])

    def _look(self, arrival: _Arrival) -> _Checked | Verdict:
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
        client_update = update_of_task(self._context, federation, task, start, report)
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
                f"the update moves the model by {moved:.3g}, and {most:g} times its norm, {most * own:.3g}, is allowed",
                fix="Train with a lower learning rate, or let the operator raise limits.most_movement.",
            )

    def _enter_all(self) -> None:
        while self._enter_ready():
            pass

    def _enter_ready(self) -> bool:
        """Enter all that are ready, once there is one; return whether there will be more."""
        batch = [self._ready.get()]
        while batch[-1] is not None and len(batch) < _BATCH and not self._ready.empty():
            batch.append(self._ready.get())
        entries = [entry for entry in batch if entry is not None]
        if entries:
            self._enter(entries)
        return batch[-1] is not None

    def _enter(self, entries: list[_Checked]) -> None:
        try:
            bodies = [_named(entry.body, entry.upload.update) for entry in entries if entry.body is not None]
            self._context.blobs.put_all(bodies + [entry.mask for entry in entries if entry.mask is not None])
            verdicts = self._context.store.uploads.accept([entry.upload for entry in entries])
        except Exception as error:
            _LOG.exception("updates could not be entered")
            _answer([(entry.arrival, _not_now(error)) for entry in entries])
            return
        _answer([(entry.arrival, verdict) for entry, verdict in zip(entries, verdicts, strict=True)])
        for entry, verdict in zip(entries, verdicts, strict=True):
            if verdict is Verdict.ACCEPTED and entry.lesson is not None:
                self._context.corrections.note_round(entry.upload.device, *entry.lesson)
            if verdict in _USELESS:  # it may have been put there by an earlier try
                with contextlib.suppress(Exception):  # a body too many does no harm
                    self._context.blobs.drop(entry.upload.update)
        if Verdict.ACCEPTED in verdicts:
            self._accepted()


def _join(thread: threading.Thread) -> None:
    if thread.ident is not None:  # it was started
        thread.join()


def _answer(answers: Sequence[tuple[_Arrival, Verdict | Exception]]) -> None:
    """Tell those who wait, all of an event loop at once: it need be woken only once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Arrival, Verdict | Exception]]] = {}
    for arrival, said in answers:
        by_loop.setdefault(arrival.loop, []).append((arrival, said))
    for loop, together in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_tell, together)


def _tell(answers: Sequence[tuple[_Arrival, Verdict | Exception]]) -> None:
    for arrival, said in answers:
        if arrival.verdict.done():  # who waited is gone
            continue
        if isinstance(said, Exception):
            arrival.verdict.set_exception(said)
        else:
            arrival.verdict.set_result(said)


def refuse(context: Context, device: Device, task_id: str, refusal: Refusal) -> Receipt:
    """Take a device's word that it does not do a task."""
    verdict = context.store.uploads.refuse(task_id, device.id, dumps(refusal), context.now())
    federation = context.library.federation(device.federation)
    if verdict is Verdict.ACCEPTED and federation is not None:
        half_life = context.library.settings(federation).memory_seconds
        context.corrections.note_refusal(device.id, refusal.reason, half_life)
    return _receipt(task_id, verdict)


def own_task(context: Context, device: Device, task_id: str) -> Task:
    """Return a task that must be there and be this device's."""
    task = context.store.tasks.get(task_id)
    if task is None or task.device != device.id:
        raise _unknown_task(task_id)
    return task


def _unknown_task(task_id: str) -> CoordinatorError:
    """Return what is said about a task that is not there, or is another device's."""
    return CoordinatorError(
        ErrorReason.NOT_FOUND, f"this device has no task {task_id!r}", fix="Drop it, and ask for the next task."
    )


def _receipt(task_id: str, verdict: Verdict) -> Receipt:
    if verdict is Verdict.UNKNOWN:
        raise _unknown_task(task_id)
    if verdict is Verdict.CONFLICT:
        raise CoordinatorError(
            ErrorReason.CONFLICT,
            f"task {task_id!r} has ended already, and otherwise than this says",
            fix="Drop this; the first word counts.",
        )
    if verdict is Verdict.WAIT:
        raise CoordinatorError(
            ErrorReason.UNAVAILABLE, "a new model is being made", fix="Send it again in a second.", retry_seconds=1
        )
    return Receipt(task_id=task_id, outcome=_OUTCOMES[verdict])


def _not_now(error: Exception) -> CoordinatorError:
    return CoordinatorError(
        ErrorReason.UNAVAILABLE,
        f"the update could not be stored ({type(error).__name__})",
        fix="Send it again later; the coordinator's log says why.",
        retry_seconds=5,
    )


def _check_task(task: Task, plan: ClientPlan, report: ResultBody) -> None:
    """Refuse a report of another task."""
    said = (report.result.task_id, report.result.device_id, report.result.round, report.mask)
    known = (task.id, task.device, task.round, plan.mask)
    for name, one, other in zip(("task", "device", "round", "mask"), said, known, strict=True):
        if one != other:
            raise WireFormatError(
                f"the result is of {name} {str(one)[:80]!r}, and {str(other)!r} was asked for",
                fix="Send the result of this very task.",
            )


def _with_arrived(result: LocalResult, arrived: int) -> LocalResult:
    """Return a result that counts itself: what it says was sent cannot have been weighed before it was sent."""
    telemetry = result.telemetry
    transfer = replace(telemetry.transfer, up_bytes=telemetry.transfer.up_bytes + arrived)
    return replace(result, telemetry=replace(telemetry, transfer=transfer))


def _check_size(body: bytes | Path, most: int) -> None:
    size = body.stat().st_size if isinstance(body, Path) else len(body)
    if size > most:
        raise CoordinatorError(
            ErrorReason.TOO_LARGE,
            f"the update has {size} bytes, and {most} are allowed",
            fix="Send less, or ask the operator for more.",
        )


def _kept(body: bytes | Path, data: bytes) -> bytes | Path:
    """Return other data of a body, where the body was: in memory, or in its file."""
    if not isinstance(body, Path):
        return data
    body.write_bytes(data)
    return body


def _named(body: bytes | Path, digest: str) -> bytes | Spooled:
    return Spooled(body, digest) if isinstance(body, Path) else body


def _norm(client_update: ClientUpdate) -> float:
    """Return the norm of the part that a device was given, at least 1: a model may begin with zeros."""
    return max(1.0, submodel_norm(client_update.mask, client_update.base))
