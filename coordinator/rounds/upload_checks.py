"""Checks of incoming updates: size, form, the task they belong to, tensors, and how far they move the model."""

from dataclasses import dataclass, replace
from pathlib import Path

from coordinator.errors import CoordinatorError, ErrorReason
from coordinator.rounds.context import Context
from coordinator.rounds.stored_updates import update_of_task
from coordinator.storage.records import Device, Federation, Task, TaskState, Upload, Verdict
from edgefl.errors import WireFormatError
from edgefl.federation.cache import LruCache
from edgefl.federation.programs import ProgramCatalogue
from edgefl.federation.updates import mask_after
from edgefl.local_rules import changes_model
from edgefl.masks import Mask
from edgefl.strategies import ClientUpdate, Strategy, check_personal, submodel_norm
from edgefl.values import ClientPlan, LocalResult, Prediction, Telemetry, digest_of, dumps
from edgefl.wire import ResultBody, decode_result, encode_mask
from edgefl.wire.byte_shuffle import ungroup

__all__ = ["CheckedUpdate", "IncomingUpdate", "UploadChecker", "own_task", "unknown_task"]


@dataclass(frozen=True, slots=True)
class IncomingUpdate:
    """An update that arrived."""

    device: Device
    task: str
    body: bytes | Path
    arrived: int
    """Bytes that it took on the network."""
    grouped: bool
    """Whether the body is still byte-shuffled."""
    known: Task | None = None
    """The task, if it was looked up before the body was read."""


@dataclass(frozen=True, slots=True)
class CheckedUpdate:
    """An update that passed the checks."""

    upload: Upload
    body: bytes | Path | None
    """None if the update is late: its result is kept, its tensors are not."""
    mask: bytes | None
    lesson: tuple[Prediction, Telemetry, float] | None = None
    """What was predicted, what was measured, and the half-life of the lesson, if plans adapt."""


class UploadChecker:
    """Checks updates. Two threads may use it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._norms: LruCache[tuple[str, str], float] = LruCache(1024)

    def check(self, incoming: IncomingUpdate) -> CheckedUpdate | Verdict:
        """Check an update; return what to store, or the verdict if it is already clear. Raise an error if it is
        invalid."""
        context, device, body = self._context, incoming.device, incoming.body
        task = own_task(context, device, incoming.task) if incoming.known is None else incoming.known
        federation = context.repository.federation(task.federation)
        if federation is None:
            raise unknown_task(task.id)
        settings = context.repository.settings(federation)
        _check_size(body, settings.limits.most_bytes)
        data = body.read_bytes() if isinstance(body, Path) else body
        if incoming.grouped:
            data = ungroup(data)
            body = _kept(body, data)
        digest = digest_of(data)
        if task.state in (TaskState.DONE, TaskState.REFUSED):
            return Verdict.ALREADY if task.update == digest else Verdict.CONFLICT
        report = decode_result(data, context.repository.bundle(federation).graph, limit=settings.limits.most_bytes)
        del data  # its tensors are copies
        plan = context.repository.plan(task)
        _check_task(task, plan, report)
        late = task.state is not TaskState.OPEN
        result = _with_arrived(report.result, incoming.arrived)
        next_mask = None if late else self._check_tensors(federation, device, task, report)
        if not late:
            context.repository.remember_result(digest, result)
        mask = None if next_mask is None else encode_mask(next_mask)
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
            return CheckedUpdate(upload, None if late else body, mask)
        lesson = (plan.predicted, result.telemetry, settings.memory_seconds)
        return CheckedUpdate(upload, None if late else body, mask, lesson)

    def _check_tensors(self, federation: Federation, device: Device, task: Task, report: ResultBody) -> Mask | None:
        """Check what is aggregated; return the device's mask from now on, or None if it keeps that of the plan."""
        start = self._context.repository.start_of(task.federation, task.round)
        if start is None:
            raise unknown_task(task.id)
        programs, capabilities = self._context.programs.of(federation), self._context.repository.capabilities(device)
        rungs = programs.rungs_of(capabilities)
        client_update = update_of_task(self._context, federation, task, start, report, rungs=rungs)
        settings = self._context.repository.settings(federation)
        if settings.is_personal(task.round):
            check_personal(client_update)
            return client_update.next_mask
        strategy = self._context.repository.strategy(federation)
        strategy.check(client_update)
        self._check_movement(strategy, client_update, start, settings.limits.most_movement)
        found = mask_after(strategy, settings, client_update)
        if rungs is not None:  # the rung that it would go down to may not be compiled yet
            whole = programs.rungs_of(capabilities, whole_ladder=True)
            ideal = mask_after(strategy, settings, replace(client_update, rungs=whole))
            if ideal is not None and (found is None or ideal.widths != found.widths):
                self._want(federation, programs, ideal, self._context.repository.plan(task).work.batch_size)
        return found

    def _want(self, federation: Federation, programs: ProgramCatalogue, mask: Mask, batch_size: int) -> None:
        """Note the programs that a strategy would have moved a device to."""
        ladder = programs.ladder
        training = ladder.training_spec(mask.widths, mask.trained, batch_size)
        specs = (training, ladder.inference_spec(mask.widths, batch_size))
        self._context.programs.want(federation, [spec for spec in specs if spec.key not in programs.programs])

    def _check_movement(self, strategy: Strategy, client_update: ClientUpdate, start: str, most: float | None) -> None:
        if most is None:
            return
        own = self._norms.get((start, client_update.mask.digest), lambda: _norm(client_update))
        moved = strategy.movement(client_update)
        if not moved <= most * own:
            raise WireFormatError(
                f"the update moves the model by {moved:.3g}, more than {most:g} times its norm, {most * own:.3g}",
                fix="Train with a lower learning rate, or ask the operator to raise limits.most_movement.",
            )


def own_task(context: Context, device: Device, task_id: str) -> Task:
    """Return a task of this device. Raise `CoordinatorError` if it does not exist."""
    task = context.store.tasks.get(task_id)
    if task is None or task.device != device.id:
        raise unknown_task(task_id)
    return task


def unknown_task(task_id: str) -> CoordinatorError:
    """Return the error about a task that does not exist, or is another device's."""
    return CoordinatorError(
        ErrorReason.NOT_FOUND, f"this device has no task {task_id!r}", fix="Drop it and ask for the next task."
    )


def _check_task(task: Task, plan: ClientPlan, report: ResultBody) -> None:
    """Refuse a report of another task."""
    reported = (report.result.task_id, report.result.device_id, report.result.round, report.mask)
    expected = (task.id, plan.device_id, task.round, plan.mask)
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


def _norm(client_update: ClientUpdate) -> float:
    """Return the norm of the device's submodel, at least 1: a model may begin with zeros."""
    return max(1.0, submodel_norm(client_update.mask, client_update.base))
