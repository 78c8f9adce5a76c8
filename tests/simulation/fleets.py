"""A small federation on the digits, and a crew that lets a test see what went to devices and what came back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from edgefl.artifacts.bundle import pack_bundle
from edgefl.simulation import (
    DeviceClass,
    Executor,
    FederationSettings,
    FleetDevice,
    SimulatedFederation,
    fleet_of,
    open_executor,
)
from edgefl.simulation.jobs import EvaluationJob, Tally, TrainingJob, TrainingOutcome
from edgefl.strategies import strategy_of
from edgefl.values import Budget, LocalWork, Setting
from tests.device_runtime.federation import bundle, digits

NARROW = DeviceClass(name="narrow", limits=Budget(kept_fraction=0.3))
WIDE = DeviceClass(name="wide")
SETTINGS: dict[str, Any] = {"rounds": 2, "per_round": 4, "seed": 5, "work": LocalWork(epochs=1, batch_size=32)}
FEDAVG: dict[str, Setting] = {"learning_rate": 0.1}


@cache
def fleet() -> tuple[FleetDevice, ...]:
    return fleet_of(digits(), clients=6, scheme="dirichlet:0.5", classes=(NARROW, WIDE), seed=1)


@dataclass
class Witness:
    """Passes jobs on, and remembers them."""

    crew: Executor
    seen: list[tuple[TrainingJob, TrainingOutcome]] = field(default_factory=list)

    def train(self, jobs: Sequence[TrainingJob]) -> Iterator[TrainingOutcome]:
        for job, outcome in zip(jobs, self.crew.train(jobs), strict=True):
            self.seen.append((job, outcome))
            yield outcome

    def examine(self, jobs: Sequence[EvaluationJob]) -> Iterator[Tally]:
        return self.crew.examine(jobs)

    def close(self) -> None:
        self.crew.close()


@cache
def witness() -> Witness:
    return Witness(open_executor(pack_bundle(bundle()), fleet()))


def federation(
    strategy: dict[str, Setting] | None = None, *, workers: int | None = None, **changes: Any
) -> SimulatedFederation:
    """A federation whose devices are in this process and watched, unless workers are asked for."""
    witness().seen.clear()
    crew = witness() if workers is None else None
    settings = FederationSettings(**(SETTINGS | changes))
    made = strategy_of("fedavg", FEDAVG if strategy is None else strategy)
    return SimulatedFederation(bundle(), fleet(), made, settings, workers=workers or 1, crew=crew)
