"""A task that is stopped, killed or cancelled anywhere ends with the bits of one that was not."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from device_runtime import checkpoint
from device_runtime.checkpoint import TrainingProgress, load_checkpoint, save_checkpoint
from device_runtime.engines import ThreadSettings, open_engine
from device_runtime.local_data import LocalData
from device_runtime.trainer import FinishedTask, StoppedError, Trainer, TrainingTask
from edgefl.data import Dataset
from edgefl.values import GraphFormat, LocalWork, RuleSettings
from edgefl.wire import BodyKind, Dense, decode, encode
from tests.device_runtime.federation import bundle, local_data, task_of, trainer
from tests.device_runtime.test_trainer import RULES, CrashError, crashing, noting

NEVER = 1e9
TASKS = {
    "sgd": {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 1e-4, "schedule": "cosine", "schedule_by": "step"},
    "fine_tune": {"learning_rate": 0.05, "momentum": 0.9, "head": "head_only"},
    "masked_noise": {"learning_rate": 0.1, "momentum": 0.5},
}


def task(rule: str, settings: Any, **work: int) -> TrainingTask:
    chosen = {"epochs": 3, "batch_size": 32} | work
    return task_of(rule=RuleSettings(name=rule, settings=settings), work=LocalWork(**chosen))


def body_of(finished: FinishedTask) -> dict[str, bytes]:
    """The data of everything in the body, packed as sent; texts such as times differ from run to run."""
    data = finished.body
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    del header["__metadata__"]
    return {name: data[slice(*(8 + length + at for at in part["data_offsets"]))] for name, part in header.items()}


def check_same(found: FinishedTask, expected: FinishedTask) -> None:
    assert body_of(found) == body_of(expected)
    assert {name: array.tobytes() for name, array in found.weights.items()} == {
        name: array.tobytes() for name, array in expected.weights.items()
    }
    assert found.result.loss == expected.result.loss
    assert found.result.steps == expected.result.steps
    assert found.result.accuracy == expected.result.accuracy
    times = found.result.telemetry.latency
    assert times.steps_measured == expected.result.telemetry.latency.steps_measured
    assert 0 < times.min_step_seconds <= times.p50_step_seconds <= times.p90_step_seconds
    assert times.round_seconds >= times.min_step_seconds * times.steps_measured


@pytest.mark.parametrize("rule", TASKS)
def test_a_task_stopped_at_ten_random_steps_ends_with_the_same_bits(rule: str, tmp_path: Path) -> None:
    doing = task(rule, TASKS[rule])
    expected = trainer(tmp_path / "calm", checkpoint_seconds=NEVER).run(doing)
    stops = sorted(random.Random(rule).sample(range(1, 36), 10))
    steps: list[int] = []
    for at in stops:
        stop = threading.Event()

        def progress(done: int, total: int, loss: float, at: int = at, stop: threading.Event = stop) -> None:
            steps.append(done)
            if done == at:
                stop.set()

        with pytest.raises(StoppedError):
            trainer(tmp_path / "rough", checkpoint_seconds=NEVER, progress=progress).run(doing, stop)
    found = trainer(tmp_path / "rough", checkpoint_seconds=NEVER, progress=noting(steps)).run(doing)
    assert steps == list(range(1, 37))  # no step was taken twice
    check_same(found, expected)


@pytest.mark.parametrize("rule", TASKS)
def test_a_task_that_crashes_at_ten_random_steps_ends_with_the_same_bits(rule: str, tmp_path: Path) -> None:
    doing = task(rule, TASKS[rule], most_steps=29)  # ends within the third epoch
    expected = trainer(tmp_path / "calm", checkpoint_seconds=NEVER).run(doing)
    for at in sorted(random.Random(rule).sample(range(1, 30), 10)):
        with pytest.raises(CrashError):
            trainer(tmp_path / "rough", progress=crashing(at)).run(doing)
    check_same(trainer(tmp_path / "rough").run(doing), expected)


class _Engine:
    """An engine whose run number `at` is stopped from outside, and ends only when it is cancelled."""

    name, format = "stopped", GraphFormat.ONNX

    def __init__(self, at: int, stop: threading.Event) -> None:
        self._engine, self._left, self._stop = open_engine("onnx", ThreadSettings(1)), at, stop
        self._cancelled = threading.Event()

    def predictor(self, model: bytes, *, program: Any = None) -> Any:
        return self._engine.predictor(model)

    def train_step(self, graph: bytes, mask: Any, *, labels: Any = None, program: Any = None) -> Any:
        self._step = self._engine.train_step(graph, mask, labels=labels)
        return self

    batch_size = None

    def __call__(self, weights: Any, batch: Any) -> Any:
        self._left -= 1
        if not self._left:
            self._stop.set()
            self._cancelled.wait(10)
            raise RuntimeError("terminated")
        return self._step(weights, batch)

    def cancel(self) -> None:
        self._cancelled.set()


@pytest.mark.parametrize(
    ("rule", "run"), [*((rule, 16) for rule in RULES), ("ditto", 17), ("maml", 17), ("base_networks", 17)]
)
def test_a_step_that_is_cancelled_is_taken_again(rule: str, run: int, tmp_path: Path) -> None:
    doing = task(rule, RULES[rule], epochs=2)
    expected = trainer(tmp_path / "calm", checkpoint_seconds=NEVER).run(doing)
    stop = threading.Event()
    with pytest.raises(StoppedError):
        trainer(tmp_path / "rough", checkpoint_seconds=NEVER, engine=_Engine(run, stop)).run(doing, stop)
    steps: list[int] = []
    found = trainer(tmp_path / "rough", checkpoint_seconds=NEVER, progress=noting(steps)).run(doing)
    # Ditto runs the engine twice a step, MAML twice in every third, Split-Mix as often as it has networks. Between the
    # runs of a step the state is not saved.
    done = {("ditto", 16): 1, ("ditto", 17): 9, ("maml", 16): 1, ("maml", 17): 13}
    done |= {("base_networks", 16): 1, ("base_networks", 17): 5}
    assert steps[0] == done.get((rule, run), run)
    check_same(found, expected)


class _Evaluating(_Engine):
    """An engine that is stopped while it evaluates, once `armed`."""

    armed = False

    def predictor(self, model: bytes, *, program: Any = None) -> Any:
        predict = self._engine.predictor(model)

        def predictor(weights: Any, x: Any) -> Any:
            if self.armed:
                self._stop.set()
                self._cancelled.wait(10)
                raise RuntimeError("terminated")
            return predict(weights, x)

        predictor.cancel = self._cancelled.set  # type: ignore[attr-defined]
        return predictor


@pytest.mark.parametrize("rule", RULES)
def test_a_task_stopped_after_its_last_step_takes_no_step_again(rule: str, tmp_path: Path) -> None:
    doing = task(rule, RULES[rule], epochs=1)
    expected = trainer(tmp_path / "calm", checkpoint_seconds=NEVER).run(doing)
    stop = threading.Event()
    engine = _Evaluating(0, stop)

    def progress(done: int, total: int, loss: float) -> None:
        engine.armed = done == total

    with pytest.raises(StoppedError):
        trainer(tmp_path / "rough", checkpoint_seconds=NEVER, engine=engine, progress=progress).run(doing, stop)
    steps: list[int] = []
    found = trainer(tmp_path / "rough", checkpoint_seconds=NEVER, progress=noting(steps)).run(doing)
    assert steps == []
    check_same(found, expected)


@pytest.mark.parametrize(
    ("changes", "samples"),
    [
        ({"seed": 12}, 400),
        ({"rule": RuleSettings(name="masked_noise", settings={})}, 400),
        ({"work": LocalWork(epochs=1, batch_size=16)}, 400),
        ({}, 300),
    ],
)
def test_a_checkpoint_of_another_plan_or_of_other_data_is_not_used(changes: Any, samples: int, tmp_path: Path) -> None:
    with pytest.raises(CrashError):
        trainer(tmp_path / "rough", progress=crashing(20)).run(task_of())
    now, data = task_of(**changes), local_data(samples)
    steps: list[int] = []
    found = trainer(tmp_path / "rough", data, progress=noting(steps)).run(now)
    assert steps[0] == 1
    check_same(found, trainer(tmp_path / "calm", data).run(now))


def test_a_checkpoint_is_used_whatever_becomes_of_the_deadline(tmp_path: Path) -> None:
    with pytest.raises(CrashError):
        trainer(tmp_path, progress=crashing(20)).run(task_of())
    steps: list[int] = []
    trainer(tmp_path, progress=noting(steps)).run(task_of(deadline_seconds=60))
    assert steps[0] == 20


SCRIPT = """
import os, signal, sys
from pathlib import Path
from tests.device_runtime.test_resuming import TASKS, task, trainer

def progress(done, total, loss):
    if done == 17:
        os.kill(os.getpid(), signal.SIGKILL)

trainer(Path(sys.argv[1]), progress=progress).run(task("sgd", TASKS["sgd"]))
"""


def test_a_killed_process_loses_nothing_that_was_saved(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "a")], cwd=root, env=os.environ | {"PYTHONPATH": ""}
    )
    assert done.returncode == -signal.SIGKILL
    steps: list[int] = []
    found = trainer(tmp_path / "a", progress=noting(steps)).run(task("sgd", TASKS["sgd"]))
    assert steps[0] == 17
    check_same(found, trainer(tmp_path / "b").run(task("sgd", TASKS["sgd"])))


def test_a_checkpoint_is_written_every_so_many_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("device_runtime.checkpoint.time.monotonic", lambda: now[0])
    written: list[int] = []
    before: list[Callable[..., None]] = [checkpoint.save_checkpoint]

    def save(path: Path, progress: TrainingProgress, state: Any) -> None:
        written.append(state.steps)
        before[0](path, progress, state)

    def tick(done: int, total: int, loss: float) -> None:
        now[0] += 1.0

    monkeypatch.setattr(checkpoint, "save_checkpoint", save)
    trainer(tmp_path, checkpoint_seconds=5.0, progress=tick).run(task("sgd", TASKS["sgd"]))
    assert written == [5, 10, 15, 20, 25, 30, 35]


def test_the_disk_is_left_alone_during_a_short_task(tmp_path: Path) -> None:
    Trainer(open_engine("onnx", ThreadSettings(1)), local_data(), tmp_path, threads=1, device_id="pi-1").run(task_of())
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_from_the_end_of_an_epoch_without_more_is_read(tmp_path: Path) -> None:
    doing = task("sgd", TASKS["sgd"])
    path = tmp_path / "rough" / "task-1.checkpoint.safetensors"

    def copy(done: int, total: int, loss: float) -> None:
        if done == 25:
            raise CrashError

    with pytest.raises(CrashError):
        trainer(tmp_path / "rough", progress=copy).run(doing)
    known = load_checkpoint(path, "task-1", bundle().graph)
    assert known is not None
    progress, state = known
    assert (progress.epochs, progress.pass_steps, state.steps) == (1, 12, 24)
    save_checkpoint(path, progress.after_epoch(), state)
    body = decode(path.read_bytes(), kind=BodyKind.WEIGHTS)
    said = json.loads(body.about["progress"])
    assert (said.pop("pass_steps"), said.pop("pass_loss")) == (0, 0.0)
    assert said.pop("origin")
    old = type(body)(
        body.kind, {name: Dense(array) for name, array in body.arrays.items()}, about={"progress": json.dumps(said)}
    )
    path.write_bytes(encode(old))
    steps: list[int] = []
    found = trainer(tmp_path / "rough", progress=noting(steps)).run(doing)
    assert steps[0] == 25
    check_same(found, trainer(tmp_path / "calm").run(doing))


class _Counting(Dataset):
    """Data that note which samples were prepared."""

    prepared: ClassVar[list[int]] = []

    def batch(self, indices: Any, part: Any = "train") -> Any:
        self.prepared.extend(np.asarray(indices).tolist())
        return Dataset.batch(self, indices, part)


def test_skipped_batches_are_not_prepared() -> None:
    plain = local_data()
    data = plain.dataset
    counting = _Counting(data.name, data.train, data.test, data.classes, normalisation=data.normalisation)
    counting.prepared.clear()
    rest = list(LocalData(counting, plain.split).epoch(5, 1, 32, skip=9))
    whole = list(plain.epoch(5, 1, 32))
    assert len(counting.prepared) == 360 - 9 * 32
    assert [batch.seed for batch in rest] == [batch.seed for batch in whole[9:]]
    assert all(np.array_equal(one.x, other.x) for one, other in zip(rest, whole[9:], strict=True))
    assert all(np.array_equal(one.y, other.y) for one, other in zip(rest, whole[9:], strict=True))
    assert list(plain.epoch(5, 1, 32, skip=12)) == []


def test_a_device_that_cannot_save_still_stops(tmp_path: Path) -> None:
    stop = threading.Event()
    folder = tmp_path / "file"
    folder.write_text("not a folder")

    def progress(done: int, total: int, loss: float) -> None:
        stop.set()

    with pytest.raises(StoppedError):
        trainer(folder, checkpoint_seconds=NEVER, progress=progress).run(task_of(), stop)
    assert folder.read_text() == "not a folder"
