"""The round after the last one, in which devices make the model their own."""

import json

import pytest

from coordinator.federations.lifecycle import Verb, move
from coordinator.federations.overview import overview_of
from coordinator.storage.records import FederationState, RoundState
from edgefl.errors import WireFormatError
from edgefl.federation.settings import (
    BufferingSettings,
    FederationMode,
    StrategyChoice,
)
from edgefl.federation.settings import RoundSettings as RoundSettings
from edgefl.values import Outcome
from tests.coordinator.fleet import tuned
from tests.coordinator.stage import Stage

TUNING = StrategyChoice(name="fedavg", settings={"fine_tune_epochs": 1})


def test_after_the_last_round_every_device_makes_the_model_its_own(stage: Stage) -> None:
    choice = StrategyChoice(name="fedavg", settings={"fine_tune_epochs": 3})
    one, two, three = stage.begin(3, strategy=choice, rounds=RoundSettings(count=1, deadline=60))
    stage.advance()
    for device in (one, two, three):
        if stage.has_task(device):
            stage.do(device)
    stage.advance(3)
    assert (stage.round.number, stage.state) == (1, RoundState.OPEN)
    plans = [stage.plan(device) for device in (one, two, three)]
    assert {plan.rule.name for plan in plans} == {"fine_tune"}
    assert {plan.work.epochs for plan in plans} == {3}
    with pytest.raises(WireFormatError, match=r"(is|are) not expected"):
        stage.upload(one, plans[0])
    for device, plan in zip((one, two), plans, strict=False):
        assert stage.upload(device, plan, tuned(plan, 0.25, 0.75)) is Outcome.ACCEPTED
    assert stage.advance() > 0, "the third is waited for"
    stage.clock.time += 60
    stage.advance(2)
    report = json.loads(stage.round.report)
    assert (report["device_accuracy_before"], report["device_accuracy"]) == (0.25, 0.75)
    assert stage.round.next_model == stage.round.model
    stage.advance()
    assert stage.federation is not None
    found = stage.context.store.federations.get(stage.federation.id)
    assert found is not None
    assert found.state is FederationState.FINISHED
    seen = overview_of(stage.context, found)
    assert (seen.rounds_done, seen.wanted) == (1, 3)
    assert seen.personal == report


def test_devices_that_come_late_make_the_model_their_own_too(stage: Stage) -> None:
    one, two, three = stage.begin(3, strategy=TUNING, rounds=RoundSettings(count=1, deadline=60))
    stage.advance()
    done = [device for device in (one, two, three) if stage.has_task(device)]
    (late,) = (device for device in (one, two, three) if device not in done)
    for device in done:
        stage.do(device)
    stage.clock.time += 95  # the one without a task was not heard of
    stage.context.store.devices.mark_seen({device.id: stage.clock.time for device in done})
    stage.advance(3)
    assert not stage.has_task(late)
    stage.context.store.devices.mark_seen({late.id: stage.clock.time})
    stage.advance()
    assert stage.plan(late).rule.name == "fine_tune"


def test_after_a_restart_devices_are_waited_for_before_the_end(stage: Stage) -> None:
    one, two = stage.begin(2, strategy=TUNING, rounds=RoundSettings(count=1, deadline=60))
    stage.advance()
    stage.do(one)
    stage.do(two)
    stage.advance(2)
    stage.clock.time += 500
    stage.context.started = stage.clock.time  # started again, and nobody was heard of yet
    stage.advance()
    assert stage.round.number == 0
    found = stage.context.store.federations.get("digits")
    assert found is not None
    assert found.state is FederationState.RUNNING
    assert found.reason is not None
    stage.context.store.devices.mark_seen({one.id: stage.clock.time})
    stage.advance()
    assert (stage.round.number, stage.has_task(one), stage.has_task(two)) == (1, True, False)


def test_a_paused_federation_that_personalises_nothing_ends(stage: Stage) -> None:
    one, two = stage.begin(2, rounds=RoundSettings(count=1, deadline=60))
    stage.advance()
    stage.do(one)
    stage.do(two)
    move(stage.context, "digits", Verb.PAUSE)
    stage.advance(3)
    found = stage.context.store.federations.get("digits")
    assert found is not None
    assert found.state is FederationState.FINISHED


def test_buffered_tasks_do_not_count_in_the_round_after_the_last(stage: Stage) -> None:
    devices = stage.begin(
        3,
        strategy=TUNING,
        mode=FederationMode.BUFFERED,
        buffering=BufferingSettings(size=1, at_once=3),
        rounds=RoundSettings(count=1, deadline=60),
    )
    stage.advance()
    plans = [stage.plan(device) for device in devices]
    assert stage.upload(devices[0], plans[0]) is Outcome.ACCEPTED
    stage.advance(3)
    assert stage.round.number == 1
    assert stage.upload(devices[1], plans[1]) is Outcome.LATE
    stage.clock.time += 5
    stage.context.store.devices.mark_seen({device.id: stage.clock.time for device in devices})
    stage.advance()
    assert stage.plan(devices[2]).rule.name == "fine_tune"
    assert stage.plan(devices[2]).deadline_seconds == stage.round.deadline_at - stage.clock.time
