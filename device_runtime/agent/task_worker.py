"""Where a task is trained: the seam between the agent, which has the network and the limits, and the trainer.

The agent downloads what a plan names; a worker reads it from the cache, trains, keeps the device's own model, and
returns the result. `TrainerInProcess` works where it is called. `device_runtime.agent.worker_process` works in another
process, which can be ended whatever a graph does.
"""

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from device_runtime.agent.task_artifacts import load_mask, load_programs, load_task
from device_runtime.engines.program_check import check_inference_program, check_training_program
from device_runtime.personal_model import PersonalModel, SavedPersonalModel, own_weights, save_personal
from device_runtime.refusal import RefusalError
from device_runtime.telemetry.energy.cpu_time_estimate import watts_per_core
from device_runtime.trainer import FinishedTask, Trainer, TrainingTask
from edgefl.artifacts.artifact_store import PRIVATE, ArtifactStore
from edgefl.errors import EdgeFLError
from edgefl.local_rules import changes_model, rule_of
from edgefl.masks import Mask
from edgefl.model_graph import cost_of
from edgefl.values import LARGEST_INTEGER, ClientPlan, DeviceProfile, GraphFormat, Program, Reason

__all__ = ["MakeTrainer", "TaskSize", "TaskWorker", "TrainerInProcess"]

MakeTrainer = Callable[[str], Trainer]
"""Returns a trainer for the tasks of a device of this id."""


@dataclass(frozen=True, slots=True)
class TaskSize:
    """What determines the memory of a task, as far as its descriptions tell the truth, and what is yet to download."""

    activation_bytes: int
    """Of a whole batch."""
    parameter_bytes: int
    trained_parameters: int
    programs: tuple[str, ...] = ()
    """Digests of the program files that its descriptions name."""

    @classmethod
    def of(cls, plan: ClientPlan, mask: Mask, samples: int | None, program: Program | None = None) -> "TaskSize":
        """Return the size of a task on a device with this many samples, or with any number of them.

        A program fills up its batches, and may train more layers than the mask.
        """
        batch = plan.work.batch_size if samples is None else min(plan.work.batch_size, samples)
        trained = mask.trained
        if program is not None:
            batch, trained = program.spec.batch_size, trained | set(program.spec.trained)
        cost = cost_of(mask.graph, mask.widths, trained)
        return cls(
            activation_bytes=min(cost.activation_bytes(batch), LARGEST_INTEGER),
            parameter_bytes=min(cost.parameter_bytes, LARGEST_INTEGER),
            trained_parameters=min(cost.trained_parameters, LARGEST_INTEGER),
        )

    def peak_bytes(self, profile: DeviceProfile | None) -> int:
        """Return the memory that this device predicts for the task, from its own measurements if it has any."""
        if profile is None:
            return self.activation_bytes + 3 * self.parameter_bytes
        return profile.cost.peak_bytes(
            activation_bytes=self.activation_bytes,
            parameter_bytes=self.parameter_bytes,
            trained_parameters=self.trained_parameters,
        )


@runtime_checkable
class TaskWorker(Protocol):
    """Trains tasks, one at a time. `stop` is set when the work must end: `StoppedError` then says that it did."""

    @property
    def joules(self) -> float:
        """The energy of the last task, however it ended; of a running one, an estimate."""
        ...

    def size(self, plan: ClientPlan, stop: threading.Event, *, memory_bytes: int | None) -> TaskSize:
        """Return the size of a task whose descriptions are in the cache."""
        ...

    def train(self, plan: ClientPlan, stop: threading.Event, *, memory_bytes: int | None, down_bytes: int) -> bytes:
        """Train a task, or resume it, within this memory; keep the device's own model and return the result."""
        ...

    def close(self) -> None:
        """End the worker."""
        ...


class TrainerInProcess:
    """Trains in this process. Memory has no limit here, and a graph ends when its running operation does."""

    def __init__(
        self,
        trainer: MakeTrainer,
        artifacts: Path,
        personal: Path,
        *,
        samples: int | None = None,
        engine: GraphFormat = GraphFormat.ONNX,
    ) -> None:
        self._make_trainer, self._artifacts, self._personal = trainer, ArtifactStore(artifacts, mode=PRIVATE), personal
        self._samples, self._engine = samples, engine
        self._saved: SavedPersonalModel | None = None
        self._joules = 0.0
        self._began: float | None = None

    @property
    def joules(self) -> float:
        """The energy of the last task; of a running one, an estimate from CPU time."""
        if self._began is None:
            return self._joules
        return (time.process_time() - self._began) * watts_per_core()

    def size(self, plan: ClientPlan, stop: threading.Event, *, memory_bytes: int | None) -> TaskSize:
        """Return the size of a task. A program that does not fit is refused before its file is downloaded."""
        mask = load_mask(plan, self._read)
        train, infer = load_programs(plan, self._engine, self._read)
        if train is not None:
            _check_programs(plan, mask, train, infer)
        size = TaskSize.of(plan, mask, self._samples, train)
        return replace(size, programs=tuple(program.pte for program in (train, infer) if program is not None))

    def train(self, plan: ClientPlan, stop: threading.Event, *, memory_bytes: int | None, down_bytes: int) -> bytes:
        """Train a task, and keep the device's own model."""
        trainer = self._make_trainer(plan.device_id)
        self._joules, self._began = 0.0, time.process_time()
        try:
            task = load_task(plan, self._read, self._engine, down_bytes=down_bytes)
            own = partial(own_weights, self._personal, plan, task.mask, task.weights)
            finished = trainer.run(replace(task, own=own), stop)
        finally:
            self._joules, self._began = trainer.joules, None
        self._keep(task, finished)
        return finished.body

    def close(self) -> None:
        """There is nothing to end."""

    def _read(self, digest: str) -> bytes:
        found = self._artifacts.get(digest)
        if found is None:
            raise RefusalError(Reason.BROKEN, f"the artifact {digest} is missing", fix="Ask for the task again.")
        return found

    def _keep(self, task: TrainingTask, finished: FinishedTask) -> None:
        """Save the device's own model. This comes before the result: with that on disk, the task counts as trained."""
        plan = task.plan
        if task.inference is None or not changes_model(plan.rule):
            return
        model = PersonalModel(
            finished.mask,
            finished.weights,
            task.inference,
            plan.round,
            plan.device_id,
            plan.task_id,
            plan.is_personal,
            task.inference_program,
            finished.networks,
        )
        with contextlib.suppress(OSError):  # disk full: the previous model stays
            self._saved = save_personal(self._personal, model, self._saved)


def _check_programs(plan: ClientPlan, mask: Mask, train: Program, infer: Program | None) -> None:
    try:
        check_training_program(train, rule_of(plan.rule).trains(mask))
        if infer is not None:
            check_inference_program(infer, mask)
    except EdgeFLError as error:
        raise RefusalError(Reason.UNSUPPORTED, error.problem, fix=error.fix) from None
