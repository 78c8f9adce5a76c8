"""A clock that jumps a day ahead and back: nothing waits for the day to pass."""

import pytest

from coordinator.errors import CoordinatorError
from coordinator.federations.lifecycle import change_deadline, new_key
from coordinator.federations.tokens import hash_of
from coordinator.storage.records import RoundState
from edgefl.federation.settings import BufferingSettings, FederationMode, RoundSettings, StrategyChoice
from tests.coordinator.stage import Stage, assignment

DAY = 86_400.0


def test_a_round_that_was_opened_a_day_ahead_closes_at_its_deadline(stage: Stage) -> None:
    stage.clock.time += DAY
    devices = stage.begin()
    stage.advance()
    stage.do(devices[0])
    stage.clock.time -= DAY
    assert stage.advance() == 60
    stage.clock.time += 60
    stage.advance(2)
    assert stage.round.closed_because == "deadline"
    assert stage.state == RoundState.DONE


def test_an_attempt_that_began_a_day_ahead_ends_at_its_deadline(stage: Stage) -> None:
    devices = stage.begin(rounds=RoundSettings(count=1, deadline=60, at_least=2))
    stage.advance()
    stage.do(devices[0])
    stage.clock.time += DAY
    stage.advance()
    assert stage.round.attempt == 2
    stage.clock.time -= DAY
    assert stage.advance() == 60


def test_a_personal_round_keeps_the_time_that_its_devices_need(stage: Stage) -> None:
    devices = stage.begin(
        2,
        rounds=RoundSettings(count=1, deadline=60),
        strategy=StrategyChoice(name="fedavg", settings={"fine_tune_epochs": 1}),
    )
    stage.advance()
    for device in devices:
        stage.do(device)
    stage.advance(2)
    stage.clock.time += DAY
    stage.context.store.devices.mark_seen({device.id: stage.clock() for device in devices})
    stage.advance()
    assert stage.round.number == 1
    lasts = stage.round.deadline_at - stage.clock()
    stage.clock.time -= DAY
    stage.advance()
    assert stage.round.deadline_at == stage.clock() + lasts


def test_a_deadline_that_was_raised_meanwhile_is_not_taken_for_a_jump(stage: Stage) -> None:
    stage.begin()
    stage.advance()
    stale = stage.context.store.federations.get("digits")
    change_deadline(stage.context, "digits", 600)
    current = stage.round
    assert stale is not None
    assert not stage.context.store.rounds.bound_deadline(current, latest=0, now=0, deadline=stale.deadline)
    assert stage.advance() == 600


def test_a_device_that_was_seen_a_day_ahead_is_available_for_the_usual_time(stage: Stage) -> None:
    (one,) = stage.begin(1, rounds=RoundSettings(count=3, deadline=60, at_least=1))
    stage.context.store.devices.mark_seen({one.id: stage.clock() + DAY})
    stage.advance()
    assert stage.has_task(one)
    stage.do(one)
    stage.advance(2)
    stage.clock.time += 91
    stage.advance()
    assert stage.round.number == 0, "it was not heard from in 90 seconds"
    stage.context.store.devices.mark_seen({one.id: stage.clock()})
    stage.advance()
    assert stage.round.number == 1


def test_a_device_that_is_heard_from_after_the_jump_is_seen_then(stage: Stage) -> None:
    (one,) = stage.begin(1)
    stage.context.store.devices.mark_seen({one.id: stage.clock() + DAY})
    stage.context.store.devices.mark_seen({one.id: stage.clock() + 1})
    seen = stage.context.store.devices.get(one.id)
    assert seen is not None
    assert seen.seen_at == stage.clock() + 1


def test_a_buffered_task_of_a_day_ahead_expires_at_its_deadline(stage: Stage) -> None:
    stage.clock.time += DAY
    (one,) = stage.begin(1, mode=FederationMode.BUFFERED, buffering=BufferingSettings(size=1, at_once=1))
    stage.advance()
    task = stage.context.store.tasks.oldest_open(one.id)
    assert task is not None
    stage.clock.time -= DAY
    stage.advance()
    plan = assignment(stage.context, one).plan
    assert plan is not None
    assert plan.deadline_seconds <= 60
    stage.clock.time += 31  # after the grace of a round that has just opened
    stage.advance()
    stage.clock.time += 61
    stage.advance()
    ended = stage.context.store.tasks.get(task.id)
    assert ended is not None
    assert ended.state == "expired"


def test_the_end_of_a_federation_does_not_wait_for_a_day_ahead(stage: Stage) -> None:
    (one,) = stage.begin(
        1,
        rounds=RoundSettings(count=1, deadline=60),
        strategy=StrategyChoice(name="fedavg", settings={"fine_tune_epochs": 1}),
    )
    stage.advance()
    plan = stage.plan(one)
    stage.clock.time += DAY
    stage.upload(one, plan)
    stage.advance(2)
    assert stage.state == RoundState.DONE
    stage.clock.time -= DAY - 200
    stage.advance()  # nobody was heard from for 90 seconds
    federation = stage.context.store.federations.get("digits")
    assert federation is not None
    assert federation.state == "finished"


def test_a_key_with_an_end_that_was_made_a_day_ahead_is_not_valid_for_that_day(stage: Stage) -> None:
    stage.begin(0)
    key, secret = new_key(stage.context, "digits", expires_at=stage.clock() + DAY + 60)
    assert not key.is_expired(stage.clock())
    stage.clock.time -= DAY
    found = stage.context.store.keys.by_hash(hash_of(secret))
    assert found is not None
    assert found.is_expired(stage.clock())


def test_an_operator_says_when_the_open_round_closes(stage: Stage) -> None:
    stage.begin()
    with pytest.raises(CoordinatorError, match="no open round"):
        change_deadline(stage.context, "digits", 60, closes_in=5)
    stage.advance()
    with pytest.raises(CoordinatorError, match="rounds last 60 s"):
        change_deadline(stage.context, "digits", 60, closes_in=61)
    change_deadline(stage.context, "digits", 60, closes_in=5)
    assert stage.advance() == 5
    change_deadline(stage.context, "digits", 600, closes_in=300)
    assert stage.advance() == 300
