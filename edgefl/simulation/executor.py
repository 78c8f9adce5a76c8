"""Who does the jobs of a simulation: this process, or several others with one thread each.

Results come in the order of the jobs, and a job's result does not depend on who did it.
"""

import multiprocessing
import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from edgefl.simulation.fleet import FleetDevice
from edgefl.simulation.jobs import EvaluationJob, Tally, TrainingJob, TrainingOutcome
from edgefl.simulation.worker import SimulationWorker

__all__ = ["ONE_THREAD", "Executor", "open_executor"]

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of processes that compute with one thread: numpy's library would take all cores in each."""


class Executor(Protocol):
    """Does jobs."""

    def train(self, jobs: Sequence[TrainingJob]) -> Iterator[TrainingOutcome]:
        """Be the devices of these tasks."""
        ...

    def examine(self, jobs: Sequence[EvaluationJob]) -> Iterator[Tally]:
        """Judge models."""
        ...

    def close(self) -> None:
        """Send the workers home."""
        ...


def open_executor(bundle: bytes, fleet: Sequence[FleetDevice], workers: int = 1) -> Executor:
    """Return a crew: with one worker it is this process."""
    return _Alone(SimulationWorker(bundle, fleet)) if workers <= 1 else _Processes(bundle, fleet, workers)


class _Alone:
    """This process."""

    def __init__(self, workshop: SimulationWorker) -> None:
        self._workshop = workshop

    def train(self, jobs: Sequence[TrainingJob]) -> Iterator[TrainingOutcome]:
        return map(self._workshop.train, jobs)

    def examine(self, jobs: Sequence[EvaluationJob]) -> Iterator[Tally]:
        return map(self._workshop.examine, jobs)

    def close(self) -> None:
        """Nobody has to go."""


class _Processes:
    """Several processes, each with the whole fleet's data. They are started afresh, as nothing else is safe here."""

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

    def examine(self, jobs: Sequence[EvaluationJob]) -> Iterator[Tally]:
        return self._pool.map(_examine, jobs, chunksize=self._chunk(len(jobs)))

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._own.cleanup()

    def _chunk(self, jobs: int) -> int:
        """Return how many jobs go to a worker at once: few enough that nobody waits for the last one alone."""
        return max(1, jobs // (8 * self._count))


_workshop: list[SimulationWorker] = []
"""The workshop of this process, where it is a worker."""


def _begin(bundle: bytes, fleet: Sequence[FleetDevice], own_models: Path) -> None:
    _workshop[:] = [SimulationWorker(bundle, fleet, own_models)]


def _awake(_: int) -> None:
    """Exist: a pool starts its processes when there is something to do."""


def _train(job: TrainingJob) -> TrainingOutcome:
    return _workshop[0].train(job)


def _examine(job: EvaluationJob) -> Tally:
    return _workshop[0].examine(job)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let processes that are started here compute with one thread."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
