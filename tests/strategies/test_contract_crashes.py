"""The contract of every strategy: a coordinator that dies in any step, and so between any two, loses nothing.

Federations run on the coordinator's own rounds, intake and SQLite store. The coordinator of the disturbed one dies once
in every step (a round is opened, an update taken, the round closed, its updates combined), when the work is done and
not yet entered in the database. The next one has nothing but the files, does the step anew, and dies in the following
one. It must end with the models, states and masks of a federation that was left alone, bit for bit.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coordinator.errors import CoordinatorError
from coordinator.rounds.context import Context
from coordinator.rounds.state_machine import RoundStateMachine
from coordinator.rounds.uploads import UploadQueue
from coordinator.storage.records import Federation, RoundState
from coordinator.storage.store import Store
from device_runtime.agent.own_capabilities import own_capabilities
from edgefl.federation.settings import BudgetCaps, SelectionSettings, StrategyChoice
from edgefl.federation.settings import RoundSettings as RoundSettings
from edgefl.simulation.jobs import TrainingJob
from edgefl.simulation.worker import SimulationWorker
from edgefl.strategies import STRATEGIES
from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.values import ClientPlan, Outcome, dumps
from tests.coordinator.fleet import Clock, enrol, make_context, running
from tests.coordinator.stage import assignment
from tests.strategies.contract import CASES, ROUNDS, SEED, WORK, fleet, packed, places, strategy
from tests.values.samples import PROFILE

SLOW = replace(
    PROFILE.cost, forward_seconds_per_multiply_add=2e-7, backward_seconds_per_multiply_add=3e-7, overhead_seconds=0.5
)
"""A thousand times slower: within its share of the deadline it can train about half the width."""
PROFILES: dict[str, dict[str, Any]] = {
    "free": {},
    "frugal": {},
    "timed": {"cost": SLOW},
    "small": {"memory_free_bytes": 51_300_000},
}


class KilledError(Exception):
    """The process died."""


def die_instead_of_moving(store: Store) -> None:
    """Let the process die instead of entering anything that moves a round."""

    def die(*_: Any, **__: Any) -> None:
        raise KilledError

    for part, name in (
        (store.rounds, "open"),
        (store.rounds, "close"),
        (store.rounds, "finish"),
        (store.uploads, "accept"),
    ):
        setattr(part, name, die)


@dataclass
class Life:
    """A federation and its devices."""

    folder: Path
    devices: "Devices"
    disturbed: bool
    rounds: int
    clock: Clock = field(default_factory=Clock)
    crashes: int = 0

    def run(self, name: str, settings: Any) -> "End":
        """Live it to its end."""
        self.context = make_context(self.folder, self.clock)
        try:
            self._begin(name, settings)
            for _ in range(3 * self.rounds):  # a round is opened, closed and combined
                self._step(lambda context: RoundStateMachine(context, _federation(context)).advance())
                for plan in _plans(self.context):
                    body = self.devices.answer(self.context, plan)
                    self._step(partial(_upload, plan=plan, body=body))
            return End.of(self.context, self.rounds)
        finally:
            self.context.store.close()

    def _begin(self, name: str, settings: Any) -> None:
        federation = running(
            self.context,
            seed=SEED,
            strategy=StrategyChoice(name=name, settings=settings),
            work=WORK,
            rounds=RoundSettings(count=self.rounds, deadline=10, at_least=2),
            selection=SelectionSettings(devices=2),
            # What is learned from measured times is written by and by, and may be lost: it only makes plans better.
            budget=BudgetCaps(adapt=False),
        )
        for device, changes in PROFILES.items():
            enrol(self.context, federation, device, **changes)
            self.context.store.devices.set_capabilities(device, dumps(own_capabilities()))

    def _step(self, work: Callable[[Context], object]) -> None:
        """Do a step. If life is hard, die in the middle of it, and let another process do it, from the files."""
        if self.disturbed:
            store = self.context.store
            die_instead_of_moving(store)
            with pytest.raises((KilledError, CoordinatorError)):
                work(self.context)
            store.close()
            self.crashes += 1
            self.context = make_context(self.folder, self.clock)
        work(self.context)


@dataclass
class Devices:
    """Devices that train; who is asked for the very same thing again sends what it has."""

    workshop: SimulationWorker
    sent: dict[tuple[str, str | None, str | None, str | None], bytes] = field(default_factory=dict)

    def answer(self, context: Context, plan: ClientPlan) -> bytes:
        asked = dumps(plan), plan.mask_body, plan.weights, plan.extras
        if asked not in self.sent:
            body = self.workshop.train(_job(context, plan)).body
            assert body is not None
            self.sent[asked] = body
        return self.sent[asked]


@dataclass(frozen=True)
class End:
    """What a federation ended with."""

    models: tuple[str, ...]
    """Digests of the bodies, round by round."""
    states: tuple[str | None, ...]
    masks: dict[str, str | None]
    weights: dict[str, Any] = field(compare=False)
    state: dict[str, Any] = field(compare=False)

    @classmethod
    def of(cls, context: Context, rounds: int) -> "End":
        done = context.store.rounds.of(_federation(context).id)
        assert [one.state for one in done] == [RoundState.DONE] * rounds
        last = done[-1]
        assert last.next_model is not None
        return cls(
            tuple(str(one.next_model) for one in done),
            tuple(one.next_state_arrays for one in done),
            {device: _device(context, device).mask_body for device in PROFILES},
            {name: np.array(array) for name, array in context.repository.arrays(last.next_model).items()},
            {}
            if last.next_state_arrays is None
            else {name: np.array(array) for name, array in context.repository.arrays(last.next_state_arrays).items()},
        )


def _federation(context: Context) -> Federation:
    found = context.store.federations.get("digits")
    assert found is not None
    return found


def _device(context: Context, name: str) -> Any:
    device = context.store.devices.get(name)
    assert device is not None
    return device


def _plans(context: Context) -> list[ClientPlan]:
    asked = [assignment(context, _device(context, device)).plan for device in PROFILES]
    return [plan for plan in asked if plan is not None]


def _job(context: Context, plan: ClientPlan) -> TrainingJob:
    """What a device downloads."""
    assert plan.mask_body is not None
    assert plan.weights is not None
    mask, weights = context.blobs.get(plan.mask_body), context.blobs.get(plan.weights)
    extras = None if plan.extras is None else context.blobs.get(plan.extras)
    return TrainingJob(places()[plan.device_id], dumps(plan).encode(), mask, weights, extras, down_bytes=0)


def _upload(context: Context, plan: ClientPlan, body: bytes) -> None:
    intake = UploadQueue(context)
    intake.start()
    try:
        device = _device(context, plan.device_id)
        receipt = asyncio.run(intake.deliver(device, plan.task_id, body, len(body)))
        assert receipt.outcome is Outcome.ACCEPTED
    finally:
        intake.stop()


@pytest.mark.parametrize(
    "case", [*STRATEGIES, "fedmap of channels", "fedspa of channels", "fedpm that counts on", "hermes by magnitude"]
)
def test_a_crash_in_any_step_loses_nothing(case: str, tmp_path: Path) -> None:
    # Where parts follow from settings alone and nothing is kept, two rounds show everything.
    rounds = 2 if isinstance(strategy(case), ComposableStrategy) else ROUNDS
    devices, lives, ends = Devices(SimulationWorker(packed(), fleet())), [], []
    for disturbed in (False, True):
        folder = tmp_path / f"disturbed-{disturbed}"
        folder.mkdir()
        lives.append(Life(folder, devices, disturbed, rounds))
        ends.append(lives[-1].run(*CASES[case]))
    # A round is opened, closed and combined, and two devices upload.
    assert [life.crashes for life in lives] == [0, 5 * rounds]
    assert ends[0] == ends[1]
    for one, other in ((ends[0].weights, ends[1].weights), (ends[0].state, ends[1].state)):
        assert one.keys() == other.keys()
        assert all(np.array_equal(array, other[name]) for name, array in one.items())
    assert len({*zip(ends[0].models, ends[0].states, strict=True)}) == (1 if case == "local" else rounds)
