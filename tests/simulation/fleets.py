"""A small federation on the digits, and an executor that lets a test see what went to devices and what came back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from edgefl.artifacts.bundle import pack_bundle
from edgefl.federation import EvaluationSettings, FederationSettings, RoundSettings, SelectionSettings
from edgefl.federation.evaluation import Tally
from edgefl.simulation import (
    DeviceClass,
    Executor,
    FleetDevice,
    SimulatedFederation,
    fleet_of,
    open_executor,
)
from edgefl.simulation.jobs import EvaluationJob, TrainingJob, TrainingOutcome
from edgefl.strategies import strategy_of
from edgefl.values import Budget, LocalWork, Setting
from tests.device_runtime.federation import bundle, digits

NARROW = DeviceClass(name="narrow", limits=Budget(kept_fraction=0.3))
WIDE = DeviceClass(name="wide")
SEED = 5
WORK = LocalWork(epochs=1, batch_size=32)
FEDAVG: dict[str, Setting] = {"learning_rate": 0.1}


def settings_of(
    *,
    rounds: int = 2,
    per_round: int = 4,
    seed: int = SEED,
    work: LocalWork = WORK,
    deadline: float = 600.0,
    evaluate_every: int = 1,
) -> FederationSettings:
    return FederationSettings(
        name="simulation",
        seed=seed,
        work=work,
        rounds=RoundSettings(count=rounds, deadline=deadline),
        selection=SelectionSettings(devices=per_round),
        evaluation=EvaluationSettings(data="digits", every=evaluate_every),
    )


@cache
def fleet() -> tuple[FleetDevice, ...]:
    return fleet_of(digits(), clients=6, scheme="dirichlet:0.5", classes=(NARROW, WIDE), seed=1)


@dataclass
class Witness:
    """Passes jobs on, and remembers them."""

    executor: Executor
    seen: list[tuple[TrainingJob, TrainingOutcome]] = field(default_factory=list)

    def train(self, jobs: Sequence[TrainingJob]) -> Iterator[TrainingOutcome]:
        for job, outcome in zip(jobs, self.executor.train(jobs), strict=True):
            self.seen.append((job, outcome))
            yield outcome

    def evaluate(self, jobs: Sequence[EvaluationJob]) -> Iterator[Tally]:
        return self.executor.evaluate(jobs)

    def close(self) -> None:
        self.executor.close()


@cache
def witness() -> Witness:
    return Witness(open_executor(pack_bundle(bundle()), fleet()))


def federation(
    strategy: dict[str, Setting] | None = None, *, workers: int | None = None, **changes: Any
) -> SimulatedFederation:
    """A federation whose devices are in this process and watched, unless workers are asked for."""
    witness().seen.clear()
    executor = witness() if workers is None else None
    settings = settings_of(**changes)
    made = strategy_of("fedavg", FEDAVG if strategy is None else strategy)
    return SimulatedFederation(bundle(), fleet(), made, settings, workers=workers or 1, executor=executor)
