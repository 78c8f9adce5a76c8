"""Runs one task of an agent, from its plan to a result in memory. Any problem with the task becomes a refusal.

A plan and everything that it names come over the network: nothing in them may end the agent, and the owner's limits
hold whatever a plan says of itself. Network errors are not the task's fault; the loop handles them and tries again.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from device_runtime.agent.agent_home import OpenTask
from device_runtime.agent.artifact_cache import ArtifactCache, DamagedError
from device_runtime.agent.client import CoordinatorClient, UnknownDeviceError
from device_runtime.agent.device_clock import DeviceClock
from device_runtime.agent.task_artifacts import description_digests, task_digests
from device_runtime.agent.task_worker import TaskWorker
from device_runtime.agent.traffic import TrafficSpentError
from device_runtime.agent.transport import UnreachableError
from device_runtime.refusal import RefusalError, refusal_for
from device_runtime.trainer import StoppedError
from edgefl.values import DeviceProfile, GraphFormat, Reason, Refusal

__all__ = ["Owner", "TaskRunner"]

_DAMAGED_DOWNLOADS = 4
_LOOK_AGAIN_SECONDS = 2.0
_MOST_PROGRAMS = 2
"""Program files of a task: to train and to predict."""


class Owner(Protocol):
    """What the device's owner allows, and is told."""

    @property
    def task_seconds(self) -> float | None:
        """The most seconds from a plan's arrival to its result."""
        ...

    def objection(self, *, peak_bytes: int | None = None, joules: float = 0.0) -> Refusal | None:
        """Return why the device may not work now, on a task of this memory that took this energy so far."""
        ...

    def memory_bytes(self) -> int | None:
        """Return the memory that a task may have now."""
        ...

    def count(self, *, joules: float = 0.0) -> None:
        """Add traffic, and the energy of a task, to today's usage."""
        ...


@dataclass(slots=True, eq=False)
class TaskRunner:
    """Runs tasks, one at a time."""

    client: CoordinatorClient
    cache: ArtifactCache
    worker: TaskWorker
    clock: DeviceClock
    owner: Owner
    profile: DeviceProfile | None = None
    """What this device measured about itself, once it has joined."""
    engine: GraphFormat = GraphFormat.ONNX
    """What this device's engine runs."""
    _damaged: dict[str, int] = field(default_factory=dict, init=False)

    def do(self, task: OpenTask, stop: threading.Event) -> bytes:
        """Run a task, or resume it, and return its result; raise `RefusalError` if it must be refused."""
        watch = _Watch(stop, lambda: self.remaining(task) <= 0, self._objects)
        try:
            return self._do(task, watch)
        except StoppedError:
            if stop.is_set():
                raise
            raise (self._late(task) if watch.objection is None else _objected(watch.objection)) from None
        except (UnreachableError, UnknownDeviceError):
            raise
        except TrafficSpentError as error:
            raise RefusalError(Reason.TRAFFIC, error.problem, fix=error.fix) from None
        except Exception as error:
            raise refusal_for(error) from error

    def remaining(self, task: OpenTask) -> float:
        """Return the seconds that are left for a task."""
        return self.clock.remaining(task, self.owner.task_seconds)

    def _do(self, task: OpenTask, watch: "_Watch") -> bytes:
        plan, before = task.plan, self.client.traffic.down
        predicted = None if plan.predicted is None else plan.predicted.peak_bytes
        self._check(task, predicted)
        digests = task_digests(plan, self.engine)
        self.cache.need(digests, keep_parts=self.engine is GraphFormat.EXECUTORCH)
        self._download(task, description_digests(plan, self.engine), watch)
        memory = self.owner.memory_bytes()
        size = self.worker.size(plan, watch, memory_bytes=memory)
        self._check(task, max(size.peak_bytes(self.profile), predicted or 0))
        digests = (*digests, *size.programs[:_MOST_PROGRAMS])
        self.cache.need(digests)
        self._download(task, digests, watch)
        watch.is_training = True
        try:
            down = self.client.traffic.down - before
            return self.worker.train(plan, watch, memory_bytes=memory, down_bytes=down)
        finally:
            self.owner.count(joules=self.worker.joules)

    def _check(self, task: OpenTask, peak_bytes: int | None) -> None:
        if self.remaining(task) <= 0:
            raise self._late(task)
        objection = self.owner.objection(peak_bytes=peak_bytes)
        if objection is not None:
            raise _objected(objection)

    def _objects(self, is_training: bool) -> Refusal | None:
        return self.owner.objection(joules=self.worker.joules if is_training else 0.0)

    def _download(self, task: OpenTask, digests: tuple[str, ...], watch: "_Watch") -> None:
        def fetch(digest: str, sink: Callable[[int, bytes], None], start: int) -> int:
            def watched(status: int, piece: bytes) -> None:
                if watch.is_set():
                    raise StoppedError
                sink(status, piece)

            return self.client.download(digest, watched, start, seconds=max(1.0, self.remaining(task)))

        try:
            for digest in digests:
                self.cache.download(digest, fetch)
        except DamagedError as error:
            count = self._damaged[error.problem] = self._damaged.get(error.problem, 0) + 1  # names the artifact
            if count >= _DAMAGED_DOWNLOADS:
                del self._damaged[error.problem]
                raise RefusalError(
                    Reason.BROKEN, error.problem, fix="Send the artifact that matches the digest."
                ) from None
            raise
        finally:
            self.owner.count()

    def _late(self, task: OpenTask) -> RefusalError:
        most = self.owner.task_seconds
        if most is None or task.plan.deadline_seconds <= most:
            return RefusalError(
                Reason.DEADLINE, "the task's deadline has passed", fix="Plan a smaller submodel, or more time."
            )
        return RefusalError(
            Reason.DEADLINE,
            f"the task took longer than the {most / 60:g} minutes that the owner allows",
            fix="Plan a smaller submodel.",
        )


class _Watch(threading.Event):
    """An event that is set when the agent must stop, the deadline has passed, or the owner's limits are reached."""

    def __init__(
        self, stop: threading.Event, is_over: Callable[[], bool], objects: Callable[[bool], Refusal | None]
    ) -> None:
        super().__init__()
        self._stop, self._is_over, self._objects = stop, is_over, objects
        self._looked = time.monotonic()
        self.is_training = False
        self.objection: Refusal | None = None

    def is_set(self) -> bool:
        """Return whether to stop. The limits are checked every few seconds: reading sensors takes time."""
        if time.monotonic() - self._looked >= _LOOK_AGAIN_SECONDS:
            self._looked = time.monotonic()
            self.objection = self.objection or self._objects(self.is_training)
        return self._stop.is_set() or self._is_over() or self.objection is not None


def _objected(objection: Refusal) -> RefusalError:
    return RefusalError(objection.reason, objection.message, fix="Ask again later.")
