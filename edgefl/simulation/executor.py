"""Executors run the jobs of a simulation: in this process, or in several others with one thread each.

Outcomes come in the order of the jobs, and do not depend on which worker ran a job.
"""

import multiprocessing
import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from edgefl.federation.evaluation import Tally
from edgefl.simulation.fleet import FleetDevice
from edgefl.simulation.jobs import EvaluationJob, TrainingJob, TrainingOutcome
from edgefl.simulation.worker import SimulationWorker

__all__ = ["ONE_THREAD", "Executor", "open_executor"]

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of processes that compute with one thread: numpy's library would take all cores in each."""


class Executor(Protocol):
    """Runs jobs."""

    def train(self, jobs: Sequence[TrainingJob]) -> Iterator[TrainingOutcome]:
        """Train these tasks as their devices would."""
        ...

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> Iterator[Tally]:
        """Evaluate models."""
        ...

    def close(self) -> None:
        """Stop the workers."""
        ...


def open_executor(bundle: bytes, fleet: Sequence[FleetDevice], workers: int = 1) -> Executor:
    """Return an executor; with one worker, jobs run in this process."""
    return _InProcess(SimulationWorker(bundle, fleet)) if workers <= 1 else _Processes(bundle, fleet, workers)


class _InProcess:
    """This process."""

    def __init__(self, worker: SimulationWorker) -> None:
        self._worker = worker

    def train(self, jobs: Sequence[TrainingJob]) -> Iterator[TrainingOutcome]:
        return map(self._worker.train, jobs)

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> Iterator[Tally]:
        return map(self._worker.evaluate, jobs)

    def close(self) -> None:
        """There is nothing to stop."""


class _Processes:
    """Several processes, each with the whole fleet's data. They are spawned: forking is not safe here."""

    def __init__(self, bundle: bytes, fleet: Sequence[FleetDevice], workers: int) -> None:
        self._count = workers
        self._own = tempfile.TemporaryDirectory(prefix="edgefl-simulation-")
        self._pool = ProcessPoolExecutor(
            workers,
            multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(bundle, tuple(fleet), Path(self._own.name)),
        )
        with _one_thread_each():
            list(self._pool.map(_awake, range(workers)))

    def train(self, jobs: Sequence[TrainingJob]) -> Iterator[TrainingOutcome]:
        return self._pool.map(_train, jobs, chunksize=self._chunk(len(jobs)))

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> Iterator[Tally]:
        return self._pool.map(_evaluate, jobs, chunksize=self._chunk(len(jobs)))

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._own.cleanup()

    def _chunk(self, jobs: int) -> int:
        """Return how many jobs go to a worker at once: few enough that all workers end at about the same time."""
        return max(1, jobs // (8 * self._count))


_worker: list[SimulationWorker] = []
"""The worker of this process, if it was started as one."""


def _begin(bundle: bytes, fleet: Sequence[FleetDevice], models: Path) -> None:
    _worker[:] = [SimulationWorker(bundle, fleet, models)]


def _awake(_: int) -> None:
    """Do nothing: a pool starts its processes only when there is a job."""


def _train(job: TrainingJob) -> TrainingOutcome:
    return _worker[0].train(job)


def _evaluate(job: EvaluationJob) -> Tally:
    return _worker[0].evaluate(job)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Make processes that are started here compute with one thread."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
