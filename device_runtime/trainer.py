"""Runs one task on this device: load, train by the plan's rule, with checkpoints, evaluate, report.

The agent calls `Trainer.run` with everything that it downloaded. The trainer knows nothing of the network, the rule
nothing of files, and the engine nothing of either. Running the same task again resumes from its last checkpoint, at the
step where that was written.
"""

import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from device_runtime.checkpoint import CHECKPOINT_SECONDS, CheckpointFile, TrainingProgress, origin_of
from device_runtime.engines import (
    Cancellation,
    Engine,
    EngineStep,
    Predictor,
    ThreadSettings,
    installed_engines,
    open_engine,
)
from device_runtime.engines.program_check import check_inference_program
from device_runtime.feature_step import FeatureStep
from device_runtime.local_data import LocalData
from device_runtime.refusal import RefusalError
from device_runtime.telemetry import Recorder
from device_runtime.training_loop import StoppedError, TrainingLoop, diverged
from edgefl.errors import EdgeFLError, SchemaError, WireFormatError
from edgefl.local_rules import (
    BaseNetworks,
    LocalRule,
    TrainingInput,
    Update,
    changes_model,
    mean_logits,
    networks_within,
    only_forward,
    rule_of,
)
from edgefl.masks import Mask, Weights
from edgefl.values import ClientPlan, GraphFormat, LocalResult, Program, Reason
from edgefl.wire import ResultBody, encode_result

__all__ = ["FinishedTask", "StoppedError", "TrainingTask", "Trainer"]

_VALIDATION_BATCH = 64
_MOST_STEPS = 1_000_000
"""Training steps of a task, at the most. Each leaves its time in the checkpoint."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainingTask:
    """A plan with everything that it names."""

    plan: ClientPlan
    mask: Mask
    weights: Weights
    graph: bytes
    """The training graph or program."""
    inference: bytes | None = None
    """The inference graph or program, which the device's own model is kept with. It evaluates with it, if an engine
    here runs it."""
    extras: Weights = field(default_factory=dict)
    down_bytes: int = 0
    """Bytes downloaded for it."""
    own: Callable[[], Weights | None] = lambda: None
    """Returns the device's own model from before the task, every tensor at the widths of the mask."""
    program: Program | None = None
    """The description of `graph`, if that is a program."""
    inference_program: Program | None = None
    """The description of `inference`, if that is a program."""


@dataclass(frozen=True, slots=True, eq=False)
class FinishedTask:
    """The outcome of a task."""

    body: bytes
    """The report, ready to send."""
    result: LocalResult
    weights: Weights
    """The device's own model now, at the widths of `mask`."""
    mask: Mask
    networks: int = 0
    """How many networks the own model is split into, whose logits are averaged; 0 if it is one."""


class Trainer:
    """Runs tasks with one engine on one device's data. Without a folder it keeps no checkpoints."""

    def __init__(
        self,
        engine: Engine,
        data: LocalData,
        folder: Path | None,
        *,
        threads: int,
        device_id: str,
        recorder: Callable[[], Recorder] = Recorder,
        secret: Callable[[], int] | None = None,
        progress: Callable[[int, int, float], None] = lambda step, steps, loss: None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
    ) -> None:
        self._engine, self._data, self._folder = engine, data, folder
        self._checkpoint_seconds = checkpoint_seconds
        """Seconds between checkpoints, at the least: flash memory wears with every one."""
        self._threads, self._device_id = threads, device_id
        self._secret = secret or partial(secrets.randbits, 128)
        """Draws seeds that nobody else knows; a simulation derives them."""
        self._recorder, self._progress = recorder, progress
        self.joules = 0.0
        """Energy of the last task, whether it finished or not."""

    def run(self, task: TrainingTask, stop: threading.Event | None = None) -> FinishedTask:
        """Run a task, or resume it."""
        plan = task.plan
        rule = _rule(plan)
        self._check_data(task)
        self.joules = 0.0
        recorder = self._recorder()
        with Cancellation(stop) as cancellation:
            try:
                return self._run(task, rule, recorder, stop or threading.Event(), cancellation)
            except Exception:
                if cancellation.is_done:
                    raise StoppedError from None
                raise
            finally:
                self.joules = recorder.joules

    def _run(
        self,
        task: TrainingTask,
        rule: LocalRule,
        recorder: Recorder,
        stop: threading.Event,
        cancellation: Cancellation,
    ) -> FinishedTask:
        plan = task.plan
        with recorder:
            step = self._load(task, rule)
            needless = task.inference is None or not changes_model(plan.rule)
            predictor = None if task.inference is None or needless else self._predictor(task, task.inference)
            cancellation.watch(step, predictor)
            recorder.loaded()
            part = self._training_input(task, rule, predictor, self._steps(plan, rule, step))
            checkpoint = CheckpointFile(self._folder, plan.task_id, self._checkpoint_seconds)
            origin = origin_of(plan, self._data.samples)
            known = checkpoint.load(task.mask.graph, origin)
            progress, state = known or (TrainingProgress(plan.task_id, origin=origin), rule.begin(part))
            recorder.recall(progress.step_seconds)
            loop = TrainingLoop(
                plan=plan,
                rule=rule,
                inputs=part,
                step=step,
                data=self._data,
                recorder=recorder,
                checkpoint=checkpoint,
                stop=stop,
                cancellation=cancellation,
                report=self._progress,
            )
            progress = loop.run(progress, state)
            extra = self._data.extra_batch(plan.seed, plan.work.batch_size)
            update, accuracy = loop.finish(progress, state, extra)
            recorder.count_bytes(down=task.down_bytes)
        result = self._result(plan, progress, state.steps, update, accuracy, recorder)
        next_mask = None if update.mask.digest == plan.mask else update.mask
        report = ResultBody(result, plan.mask, update.tensors, next_mask, plan.seed)
        try:
            body = encode_result(report, task.mask.graph)
        except WireFormatError as error:  # a tensor has values that are not finite
            raise diverged(error.problem) from None
        networks = rule.networks if isinstance(rule, BaseNetworks) else 0
        return FinishedTask(body, result, update.weights, update.mask, networks)

    def forget(self, task_id: str) -> None:
        """Remove the checkpoint of a task that has ended."""
        CheckpointFile(self._folder, task_id, self._checkpoint_seconds).remove()

    def _check_data(self, task: TrainingTask) -> None:
        """Refuse a model that expects other samples, or fewer classes, than the device has."""
        graph, features = task.mask.graph, self._data.dataset.train.features
        elements = int(np.prod(features.shape[1:]))
        classes = graph.classes
        if graph.input_elements and elements != graph.input_elements:
            problem = f"a sample here has {elements} numbers, but the model takes {graph.input_elements}"
        elif classes is not None and self._data.dataset.classes > classes:
            problem = f"the data here has {self._data.dataset.classes} classes, but the model has {classes}"
        else:
            return
        raise RefusalError(Reason.DATA, problem, fix="Give the device the data of this federation.")

    def _load(self, task: TrainingTask, rule: LocalRule) -> EngineStep:
        classes = task.mask.graph.classes or self._data.dataset.classes
        try:
            if only_forward(rule):
                return FeatureStep(self._engine_for(None).predictor(task.graph))
            trained = rule.trains(task.mask)
            labels = self._data.label_flags(max(classes, 1))
            return self._engine_for(task.program).train_step(task.graph, trained, labels=labels, program=task.program)
        except EdgeFLError as error:
            raise RefusalError(Reason.UNSUPPORTED, error.problem, fix=error.fix) from None

    def _predictor(self, task: TrainingTask, model: bytes) -> Predictor | None:
        """Return what evaluates; None for a graph where only ExecuTorch is installed."""
        program = task.inference_program
        if program is not None:
            check_inference_program(program, task.mask)
        elif self._engine.format is GraphFormat.EXECUTORCH and GraphFormat.ONNX not in installed_engines():
            return None
        return self._engine_for(program).predictor(model, program=program)

    def _engine_for(self, program: Program | None) -> Engine:
        """Return this device's engine, or onnxruntime for a graph: a task may be from before the engine changed."""
        if program is None and self._engine.format is GraphFormat.EXECUTORCH:
            return open_engine("onnx", ThreadSettings(self._threads))
        return self._engine

    def _training_input(
        self, task: TrainingTask, rule: LocalRule, predictor: Predictor | None, steps: int
    ) -> TrainingInput:
        plan = task.plan
        return TrainingInput(
            task.mask,
            task.weights,
            plan.seed,
            round=plan.round,
            rounds=plan.rounds,
            steps=steps,
            extras=task.extras,
            accuracy=None
            if predictor is None or not len(self._data.split.validation)
            else self._accuracy_of(predictor, lambda weights: networks_within(rule, task.mask, weights)),
            own=task.own,
            epoch_steps=self._data.steps(plan.work.batch_size),
            secret=self._secret,
        )

    def _steps(self, plan: ClientPlan, rule: LocalRule, step: EngineStep) -> int:
        """Return the number of steps of the task."""
        size = min(plan.work.batch_size, self._data.samples)
        if step.batch_size is not None and size > step.batch_size:
            raise RefusalError(
                Reason.UNSUPPORTED,
                f"the program takes batches of at most {step.batch_size}, but the plan asks for {size}",
                fix="Compile a program for the plan's batch size.",
            )
        if only_forward(rule):
            steps = -(-self._data.samples // plan.work.batch_size)
        else:
            steps = plan.work.epochs * self._data.steps(plan.work.batch_size)
        steps = min(steps, plan.work.most_steps or steps)
        if steps > _MOST_STEPS:
            raise RefusalError(
                Reason.UNSUPPORTED,
                f"the plan asks for {steps:,} training steps, and devices do at most {_MOST_STEPS:,}",
                fix="Plan fewer epochs.",
            )
        return steps

    def _accuracy_of(
        self, predictor: Predictor, networks_of: Callable[[Weights], Sequence[Weights]]
    ) -> Callable[[Weights], float]:
        def share(weights: Weights) -> float:
            networks = networks_of(weights)
            right = [
                mean_logits(predictor, networks, batch.x).argmax(axis=1) == batch.y
                for batch in self._data.validation(_VALIDATION_BATCH)
            ]
            return float(np.mean(np.concatenate(right)))

        return share

    def _result(
        self,
        plan: ClientPlan,
        progress: TrainingProgress,
        steps: int,
        update: Update,
        accuracy: float | None,
        recorder: Recorder,
    ) -> LocalResult:
        return LocalResult(
            task_id=plan.task_id,
            device_id=self._device_id,
            round=plan.round,
            samples=self._data.samples,
            steps=steps,
            loss=progress.mean_loss,
            telemetry=recorder.telemetry(self._threads),
            accuracy=accuracy,
            metrics=dict(update.metrics) | recorder.hints(),
        )


def _rule(plan: ClientPlan) -> LocalRule:
    try:
        return rule_of(plan.rule)
    except SchemaError as error:
        raise RefusalError(Reason.UNSUPPORTED, error.problem, fix=error.fix) from None
