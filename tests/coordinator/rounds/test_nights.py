"""A week of phones that charge at night, with the coordinator's own rounds and a clock that the test moves."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from coordinator.storage.records import Device, FederationState, RoundState
from edgefl.federation import (
    BudgetCaps,
    BufferingSettings,
    FederationMode,
    RoundSettings,
    SelectionSettings,
    StrategyChoice,
)
from edgefl.simulation import DeviceClass, FleetDevice, fleet_of
from edgefl.simulation.nights import NightlyCharging
from edgefl.values import Outcome
from tests.coordinator.fleet import tuned
from tests.coordinator.stage import Stage, assignment
from tests.device_runtime.federation import digits

HOUR, DAY = 3600.0, 86_400.0
TICK = HOUR / 2
PHONES = 6


@dataclass
class Phone:
    """A device that works while it charges, and goes on with its task the next night."""

    device: Device
    fleet: FleetDevice
    task_hours: float
    task: str | None = None
    left: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)

    def live(self, stage: Stage, nights: NightlyCharging, at: float) -> None:
        if nights.online_until(self.fleet, at) is None:
            return
        stage.context.store.devices.mark_seen({self.device.id: stage.clock.time})
        plan = assignment(stage.context, self.device).plan
        if plan is None:
            self.task = None
            return
        if plan.task_id != self.task:
            self.task, self.left = plan.task_id, self.task_hours * HOUR
        self.left -= TICK
        if self.left <= 0:
            body = tuned(plan, 0.25, 0.75) if plan.is_personal else None
            self.outcomes.append(stage.upload(self.device, plan, body))
            self.task = None


def week(stage: Stage, phones: list[Phone], nights: NightlyCharging, days: int = 7) -> None:
    """Move the clock in steps of half an hour; phones poll while they charge."""
    start = stage.clock.time
    while (at := stage.clock.time - start) < days * DAY:
        for phone in phones:
            phone.live(stage, nights, at)
        for _ in range(4):
            if stage.advance() > 0:
                break
        for phone in phones:  # a poll is held open until the coordinator has looked
            if phone.task is None:
                phone.live(stage, nights, at)
        stage.clock.time += TICK


def begun(stage: Stage, task_hours: float, **changes: Any) -> tuple[list[Phone], NightlyCharging]:
    devices = stage.begin(PHONES, **changes)
    fleet = fleet_of(digits(), clients=PHONES, classes=[DeviceClass(name="phone")])
    phones = [Phone(device, one, task_hours) for device, one in zip(devices, fleet, strict=True)]
    return phones, NightlyCharging(seed=3, spread=8 * HOUR, skips=0.2)


def done(stage: Stage) -> int:
    assert stage.federation is not None
    return sum(one.state is RoundState.DONE for one in stage.context.store.rounds.of(stage.federation.id))


BUFFERED: dict[str, Any] = {
    "mode": FederationMode.BUFFERED,
    "rounds": RoundSettings(count=100, deadline=20 * HOUR),
    "buffering": BufferingSettings(size=3, at_once=PHONES),
}
LONG: dict[str, Any] = {
    "rounds": RoundSettings(count=100, deadline=36 * HOUR, at_least=2),
    "selection": SelectionSettings(devices=3, over_select=1.7, available_within=26 * HOUR),
    "budget": BudgetCaps(seconds=2 * HOUR),
}


@pytest.mark.parametrize(("settings", "least"), [(BUFFERED, 10), (LONG, 6)], ids=["buffered", "long deadlines"])
def test_a_week_of_nights_makes_progress(stage: Stage, settings: dict[str, Any], least: int) -> None:
    phones, nights = begun(stage, task_hours=2.0, **settings)
    week(stage, phones, nights)
    assert done(stage) >= least
    assert all(Outcome.ACCEPTED in phone.outcomes for phone in phones)  # every phone's data count


def test_a_task_longer_than_a_night_is_finished_the_next_night(stage: Stage) -> None:
    phones, nights = begun(stage, task_hours=9.0, **(BUFFERED | {"rounds": RoundSettings(count=9, deadline=40 * HOUR)}))
    week(stage, phones, nights, days=4)
    accepted = sum(phone.outcomes.count(Outcome.ACCEPTED) for phone in phones)
    assert accepted >= PHONES


def test_with_a_short_deadline_it_comes_to_nothing(stage: Stage) -> None:
    phones, nights = begun(stage, task_hours=9.0, **(BUFFERED | {"rounds": RoundSettings(count=9, deadline=4 * HOUR)}))
    week(stage, phones, nights, days=3)
    assert not any(phone.outcomes for phone in phones)


def test_phones_of_a_buffered_federation_personalise_the_night_after_the_last_model(stage: Stage) -> None:
    settings = BUFFERED | {
        "rounds": RoundSettings(count=2, deadline=40 * HOUR),
        "strategy": StrategyChoice(name="fedavg", settings={"learning_rate": 0.1, "fine_tune_epochs": 1}),
    }
    phones, _ = begun(stage, task_hours=1.0, **settings)
    week(stage, phones, NightlyCharging(seed=3, spread=8 * HOUR, skips=0.0), days=4)
    assert stage.federation is not None
    personal = stage.context.store.tasks.of(stage.federation.id, number=2)
    assert {task.device for task in personal if task.result is not None} == {phone.device.id for phone in phones}
    federation = stage.context.store.federations.get(stage.federation.id)
    assert federation is not None
    assert federation.state is FederationState.FINISHED
