"""Runs jobs on a Ray cluster, for fleets that outgrow one machine. The cluster's machines need EdgeFL installed.

Each worker is a Ray actor with the model and all devices' data, which travel to a machine once. Jobs are dealt in
turns. Where training starts from a device's own model, the device always goes to the same worker, which has it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from edgefl.errors import EdgeFLError, MissingDependencyError
from edgefl.federation.evaluation import Tally
from edgefl.simulation.executor import Executor
from edgefl.simulation.fleet import FleetDevice
from edgefl.simulation.jobs import EvaluationJob, TrainingJob, TrainingOutcome
from edgefl.simulation.worker import SimulationWorker

__all__ = ["ray_executor"]


def ray_executor(
    bundle: bytes, fleet: Sequence[FleetDevice], *, address: str | None = None, workers: int | None = None
) -> Executor:
    """Return an executor on the cluster at this address, or on a local one that stops with it."""
    try:
        import ray
    except ImportError:
        raise MissingDependencyError("ray", action="A simulation on Ray", extra="ray") from None
    return _RayExecutor(ray, bundle, fleet, address, workers)


class _RayExecutor:
    def __init__(
        self, ray: Any, bundle: bytes, fleet: Sequence[FleetDevice], address: str | None, workers: int | None
    ) -> None:
        self._ray = ray
        self._started = not ray.is_initialized()
        if self._started:
            _connect(ray, address, workers)
        count = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        actor = ray.remote(num_cpus=1)(_Worker)
        data = ray.put(tuple(fleet))
        self._workers = [actor.remote(bundle, data) for _ in range(count)]

    def train(self, jobs: Sequence[TrainingJob]) -> Iterator[TrainingOutcome]:
        """Train these tasks on the workers."""
        bodies = _Bodies(self._ray)
        waiting = [
            self._of(job.device if job.starts_from_own else turn).train.remote(
                replace(job, weights=b""), bodies.put(job.weights)
            )
            for turn, job in enumerate(jobs)
        ]
        return map(self._ray.get, waiting)

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> Iterator[Tally]:
        """Evaluate models on the workers."""
        bodies = _Bodies(self._ray)
        waiting = [
            self._of(turn).evaluate.remote(replace(job, weights=b""), bodies.put(job.weights))
            for turn, job in enumerate(jobs)
        ]
        return map(self._ray.get, waiting)

    def close(self) -> None:
        """Stop the workers, and the cluster if it was started here."""
        for worker in self._workers:
            self._ray.kill(worker)
        self._workers = []
        if self._started:
            self._ray.shutdown()

    def _of(self, turn: int) -> Any:
        return self._workers[turn % len(self._workers)]


class _Worker:
    """The actor: a worker that runs one job at a time."""

    def __init__(self, bundle: bytes, fleet: Sequence[FleetDevice]) -> None:
        self._worker = SimulationWorker(bundle, fleet)

    def train(self, job: TrainingJob, weights: bytes) -> TrainingOutcome:
        return self._worker.train(replace(job, weights=weights))

    def evaluate(self, job: EvaluationJob, weights: bytes) -> Tally:
        return self._worker.evaluate(replace(job, weights=weights))


class _Bodies:
    """Sends bodies that many jobs share to the cluster once."""

    def __init__(self, ray: Any) -> None:
        self._put: Callable[[bytes], Any] = ray.put
        self._known: dict[int, tuple[bytes, Any]] = {}

    def put(self, body: bytes) -> Any:
        if id(body) not in self._known:
            self._known[id(body)] = body, self._put(body)
        return self._known[id(body)][1]


def _connect(ray: Any, address: str | None, workers: int | None) -> None:
    try:
        if address is None:
            ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error")
        else:
            ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise EdgeFLError(
            f"there is no Ray cluster at {address}: {error}",
            fix="Start one with `ray start --head`, or name its address.",
        ) from None
