"""The steps of a task: batches, the rule, the mean loss, and checkpoints in time.

The trainer prepares everything, and calls `TrainingLoop.run` and `TrainingLoop.finish`. A loop that starts from a
checkpoint takes exactly the steps that are left, wherever in an epoch that is.
"""

import contextlib
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from device_runtime.checkpoint import CheckpointFile, TrainingProgress
from device_runtime.engines import Cancellation, EngineStep
from device_runtime.local_data import LocalData
from device_runtime.refusal import RefusalError
from device_runtime.telemetry import Recorder
from edgefl.local_rules import Batch, LocalRule, State, StepResult, TrainingInput, Update, only_forward
from edgefl.masks import Weights
from edgefl.values import ClientPlan, Reason

__all__ = ["StoppedError", "TrainingLoop", "diverged"]


class StoppedError(Exception):
    """The task was stopped; its checkpoint is kept."""


def diverged(problem: str) -> RefusalError:
    """Return the refusal of a task whose numbers are not finite."""
    return RefusalError(Reason.DIVERGED, problem, fix="Lower the learning rate, or clip the gradients.")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TrainingLoop:
    """Everything that stays the same from step to step."""

    plan: ClientPlan
    rule: LocalRule
    inputs: TrainingInput
    step: EngineStep
    data: LocalData
    recorder: Recorder
    checkpoint: CheckpointFile
    stop: threading.Event
    cancellation: Cancellation
    report: Callable[[int, int, float], None]
    """Called after every step with its number, the number of all steps, and its loss."""
    _engine: "_CountedStep" = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_engine", _CountedStep(self.step))

    def run(self, progress: TrainingProgress, state: State) -> TrainingProgress:
        """Take the steps that are left; the state changes in place."""
        while state.steps < self.inputs.steps:
            progress = self._pass(progress, state)
        return progress

    def finish(self, progress: TrainingProgress, state: State, batch: Batch) -> tuple[Update, float | None]:
        """Return the update and the accuracy of the device's own model. What is stopped here keeps its training."""
        try:
            update = self.rule.finish(self.inputs, state, batch, self.step)
            return update, None if self.inputs.accuracy is None else self.inputs.accuracy(update.weights)
        except Exception:
            if self.cancellation.is_done:
                self._keep(progress, state)
            raise

    def _pass(self, progress: TrainingProgress, state: State) -> TrainingProgress:
        """Take the rest of an epoch's steps, or what is left of all steps."""
        for batch in self._batches(progress):
            if state.steps >= self.inputs.steps:
                return progress
            if self.stop.is_set():
                self._keep(progress, state)
                raise StoppedError
            result = self._step(progress, state, batch)
            if not math.isfinite(result.loss):
                raise diverged(f"the loss is {result.loss} after {state.steps} steps")
            progress = progress.after_step(result.loss)
            self.report(state.steps, self.inputs.steps, result.loss)
            self._save_if_due(progress, state)
        return progress.after_epoch()

    def _batches(self, progress: TrainingProgress) -> Iterator[Batch]:
        """Return what is left of a pass: an epoch's batches, or every sample where nothing is trained."""
        size, done = self.plan.work.batch_size, progress.pass_steps
        if only_forward(self.rule):
            return self.data.every(self.plan.seed, size, skip=done)
        return self.data.epoch(self.plan.seed, progress.epochs, size, skip=done)

    def _step(self, progress: TrainingProgress, state: State, batch: Batch) -> StepResult:
        self._engine.runs = 0
        try:
            with self.recorder.step():
                return self.rule.step(self.inputs, state, batch, self._engine)
        except Exception:
            # Before its first run has returned, a step may be taken again from the state as it is (see `LocalRule`).
            if self.cancellation.is_done and not self._engine.runs:
                self._keep(progress, state)
            raise

    def _save_if_due(self, progress: TrainingProgress, state: State) -> None:
        if self.checkpoint.is_due:
            self.checkpoint.save(progress.timed(self.recorder.step_seconds), state)

    def _keep(self, progress: TrainingProgress, state: State) -> None:
        """Save what was trained since the last checkpoint. A device that must stop stops even if that fails."""
        if state.steps > self.checkpoint.steps:
            with contextlib.suppress(RefusalError):
                self.checkpoint.save(progress.timed(self.recorder.step_seconds), state)


class _CountedStep:
    """A training step that counts how often it has returned."""

    def __init__(self, step: EngineStep) -> None:
        self._step = step
        self.runs = 0

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        result = self._step(weights, batch)
        self.runs += 1
        return result
