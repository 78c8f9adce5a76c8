"""Runs one task of an agent, from its plan to a result in memory. Any problem with the task becomes a refusal.

A plan and everything that it names come over the network: nothing in them may end the agent. Network errors are not the
task's fault; the loop handles them and tries again.
"""

import errno
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from device_runtime.agent.agent_home import OpenTask
from device_runtime.agent.artifact_cache import ArtifactCache, DamagedError
from device_runtime.agent.client import CoordinatorClient, UnknownDeviceError
from device_runtime.agent.device_clock import DeviceClock
from device_runtime.agent.downloads import download_task
from device_runtime.agent.transport import UnreachableError
from device_runtime.personal_model import own_weights
from device_runtime.refusal import RefusalError
from device_runtime.trainer import FinishedTask, StoppedError, Trainer, TrainingTask
from edgefl.errors import EdgeFLError
from edgefl.values import Reason, Refusal

__all__ = ["Objection", "TaskRunner"]

Objection = Callable[[int | None], Refusal | None]
"""Returns why the device may not work now on a task of this many bytes, or None if it may."""

_DAMAGED_DOWNLOADS = 4
_LOOK_AGAIN_SECONDS = 2.0


class TaskRunner:
    """Runs tasks, one at a time."""

    def __init__(
        self,
        client: CoordinatorClient,
        cache: ArtifactCache,
        personal: Path,
        trainer: Callable[[str], Trainer],
        clock: DeviceClock,
        objection: Objection,
        downloaded: Callable[[], None],
        spent: Callable[[float], None],
    ) -> None:
        self._client, self._cache, self._personal, self._make_trainer = client, cache, personal, trainer
        self._clock, self._objection = clock, objection
        self._downloaded, self._spent = downloaded, spent
        self._damaged: dict[str, int] = {}

    def do(self, task: OpenTask, stop: threading.Event) -> tuple[TrainingTask, FinishedTask]:
        """Run a task, or resume it; raise `RefusalError` if it must be refused."""
        try:
            self._check(task)
            ready = self._download(task)
            own = partial(own_weights, self._personal, ready.plan, ready.mask, ready.weights)
            ready = replace(ready, own=own)
            return ready, self._train(task, ready, stop)
        except (RefusalError, UnreachableError, UnknownDeviceError, StoppedError):
            raise
        except MemoryError:
            raise RefusalError(Reason.MEMORY, "there was not enough memory", fix="Plan a smaller submodel.") from None
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            said = error.strerror or str(error)
            raise RefusalError(Reason.STORAGE if full else Reason.BROKEN, said, fix="Free some space.") from None
        except EdgeFLError as error:
            raise RefusalError(Reason.BROKEN, error.problem, fix=error.fix) from None
        except Exception as error:  # whatever a library does with an untrusted graph must not end the agent
            problem = f"{type(error).__name__}: {error}"
            raise RefusalError(Reason.BROKEN, problem, fix="Check what the plan names.") from error

    def _check(self, task: OpenTask) -> None:
        if self._clock.remaining(task) <= 0:
            raise _late()
        peak = None if task.plan.predicted is None else task.plan.predicted.peak_bytes
        objection = self._objection(peak)
        if objection is not None:
            raise _objected(objection)

    def _download(self, task: OpenTask) -> TrainingTask:
        try:
            return download_task(task.plan, self._cache, self._client)
        except DamagedError as error:
            count = self._damaged[error.problem] = self._damaged.get(error.problem, 0) + 1  # names the artifact
            if count >= _DAMAGED_DOWNLOADS:
                raise RefusalError(
                    Reason.BROKEN, error.problem, fix="Send the artifact that matches the digest."
                ) from None
            raise
        finally:
            self._downloaded()

    def _train(self, task: OpenTask, ready: TrainingTask, stop: threading.Event) -> FinishedTask:
        trainer = self._make_trainer(task.plan.device_id)
        watch = _Watch(stop, lambda: self._clock.remaining(task) <= 0, lambda: self._objection(None))
        try:
            return trainer.run(ready, watch)
        except StoppedError:
            if stop.is_set():
                raise
            raise (_late() if watch.objection is None else _objected(watch.objection)) from None
        finally:
            self._spent(trainer.joules)


class _Watch(threading.Event):
    """An event that is set when the agent must stop, the deadline has passed, or the owner's limits are reached."""

    def __init__(
        self, stop: threading.Event, is_over: Callable[[], bool], objects: Callable[[], Refusal | None]
    ) -> None:
        super().__init__()
        self._stop, self._is_over, self._objects = stop, is_over, objects
        self._looked = time.monotonic()
        self.objection: Refusal | None = None

    def is_set(self) -> bool:
        """Return whether to stop. The limits are checked every few seconds: reading sensors takes time."""
        if time.monotonic() - self._looked >= _LOOK_AGAIN_SECONDS:
            self.objection, self._looked = self._objects(), time.monotonic()
        return self._stop.is_set() or self._is_over() or self.objection is not None


def _objected(objection: Refusal) -> RefusalError:
    return RefusalError(objection.reason, objection.message, fix="Ask again later.")


def _late() -> RefusalError:
    return RefusalError(Reason.DEADLINE, "the task's deadline has passed", fix="Plan a smaller submodel, or more time.")
