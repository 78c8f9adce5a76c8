"""What rounds do, move by move, with a clock that the test moves."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from coordinator.federations.lifecycle import Verb, move
from coordinator.rounds.uploads import UploadQueue, refuse
from coordinator.storage.records import FederationState, RoundState
from edgefl.artifacts.submodel import bundle_weights
from edgefl.federation.settings import RoundSettings as RoundSettings
from edgefl.federation.settings import (
    SelectionSettings,
)
from edgefl.model_graph import TensorRole
from edgefl.values import LARGEST_INTEGER, Outcome, Reason, Refusal
from tests.coordinator.fleet import Clock, answer, enrol, make_context
from tests.coordinator.stage import Stage, assignment
from tests.device_runtime.federation import bundle
from tests.values.samples import PROFILE


def test_a_round_closes_with_enough_updates_and_averages_them_by_samples(stage: Stage) -> None:
    one, two = stage.begin()
    stage.advance()
    assert stage.do(one, shift=1.0, samples=30) is Outcome.ACCEPTED
    assert stage.do(two, shift=5.0, samples=10) is Outcome.ACCEPTED
    stage.advance(2)
    assert stage.state == RoundState.DONE
    before = bundle_weights(bundle())
    for name, array in stage.weights(0).items():
        if bundle().graph.tensor[name].role is not TensorRole.STATISTIC:
            np.testing.assert_allclose(array, before[name] + 2.0, rtol=1e-6, atol=1e-6)
    report = json.loads(stage.round.report)
    assert (report["updates"], report["samples"]) == (2, 40)


def test_a_round_waits_for_its_slower_device_until_the_deadline_and_no_longer(stage: Stage) -> None:
    one, two = stage.begin()
    stage.advance()
    stage.plan(two)  # it takes its task and is never heard of again
    stage.do(one)
    assert stage.advance() == 60
    assert stage.state == RoundState.OPEN
    stage.clock.time += 60
    stage.advance(2)
    assert stage.state == RoundState.DONE
    assert stage.round.closed_because == "deadline"


def test_below_the_minimum_a_round_goes_on_with_other_devices_and_keeps_what_came(stage: Stage) -> None:
    devices = stage.begin(4, rounds=RoundSettings(count=1, deadline=60, at_least=2))
    stage.advance()
    first = [device for device in devices if stage.has_task(device)]
    others = [device for device in devices if device not in first]
    assert len(first) == 2
    stage.do(first[0], shift=1.0)
    stage.clock.time += 60
    stage.context.store.devices.mark_seen({device.id: stage.clock() for device in others})
    stage.advance()
    assert stage.state == RoundState.OPEN
    assert stage.round.attempt == 2
    assert stage.round.deadline_at == stage.clock() + 60
    helper = next(device for device in others if stage.has_task(device))
    stage.do(helper, shift=3.0)
    stage.advance(2)
    assert stage.state == RoundState.DONE
    assert json.loads(stage.round.report)["updates"] == 2


def test_a_device_of_an_earlier_attempt_still_counts(stage: Stage) -> None:
    one, two = stage.begin(rounds=RoundSettings(count=1, deadline=60, at_least=2))
    stage.advance()
    slow = stage.plan(two)
    stage.do(one)
    stage.clock.time += 60
    stage.advance()
    assert stage.round.attempt == 2
    assert stage.upload(two, slow) is Outcome.ACCEPTED


def test_a_round_of_refusals_asks_others_at_once(stage: Stage) -> None:
    devices = stage.begin(3, selection=SelectionSettings(devices=1))
    stage.advance()
    busy = next(device for device in devices if stage.has_task(device))
    refusal = Refusal(reason=Reason.POWER, message="not on mains power")
    assert refuse(stage.context, busy, stage.plan(busy).task_id, refusal).outcome is Outcome.ACCEPTED
    stage.advance()
    assert stage.round.attempt == 1
    assert any(stage.has_task(device) for device in devices if device != busy)


def test_a_device_that_refused_is_asked_again_only_after_the_deadline(stage: Stage) -> None:
    (one,) = stage.begin(1, selection=SelectionSettings(devices=1))
    stage.advance()
    refusal = Refusal(reason=Reason.DATA, message="no data")
    refuse(stage.context, one, stage.plan(one).task_id, refusal)
    assert stage.advance() > 0
    assert not stage.has_task(one)
    stage.clock.time += 60
    stage.context.store.devices.mark_seen({one.id: stage.clock()})
    stage.advance()
    assert stage.round.attempt == 2
    assert stage.has_task(one)


def test_after_too_many_deadlines_it_pauses_for_the_operator_and_resumed_gets_one_more(stage: Stage) -> None:
    stage.begin(2, rounds=RoundSettings(count=1, deadline=60, at_least=2, most_attempts=2))
    stage.advance()
    assert stage.federation is not None
    for attempt in (2, 2, 2):
        stage.clock.time += 61
        stage.advance()
        assert stage.round.attempt == attempt
    federation = stage.context.store.federations.get(stage.federation.id)
    assert federation is not None
    assert federation.state is FederationState.PAUSED
    assert "too few updates" in (federation.reason or "")
    move(stage.context, federation.id, Verb.RESUME)
    stage.advance()
    assert (stage.state, stage.round.attempt) == (RoundState.OPEN, 3)
    stage.clock.time += 61
    stage.advance()
    again = stage.context.store.federations.get(stage.federation.id)
    assert again is not None
    assert again.state is FederationState.PAUSED


def test_the_operator_is_told_what_it_waits_for(stage: Stage) -> None:
    stage.begin(1, selection=SelectionSettings(devices=2, wait_for=2))
    stage.advance()
    assert stage.federation is not None
    waiting = stage.context.store.federations.get(stage.federation.id)
    assert waiting is not None
    assert waiting.reason == "waiting for devices: 1 of 2 are available"
    enrol(stage.context, stage.federation, "another")
    stage.advance()
    opened = stage.context.store.federations.get(stage.federation.id)
    assert opened is not None
    assert opened.reason is None


def test_a_profile_that_claims_the_impossible_stops_nobody_else(stage: Stage) -> None:
    (one,) = stage.begin(1)
    assert stage.federation is not None
    for name, wrong in (
        ("slow", {"overhead_seconds": 1e308}),
        ("large", {"memory_base_bytes": LARGEST_INTEGER}),
        ("huge", {"memory_bytes_per_activation_byte": 1e308}),
    ):
        enrol(stage.context, stage.federation, name, cost=replace(PROFILE.cost, **wrong))
    stage.advance()
    assert stage.has_task(one)


def test_it_waits_for_devices_and_does_not_open_an_empty_round(stage: Stage) -> None:
    stage.begin(1, selection=SelectionSettings(devices=2, wait_for=2))
    assert stage.advance() > 0
    assert stage.round is None


def test_a_device_that_was_not_heard_of_lately_is_not_asked(stage: Stage) -> None:
    one, two = stage.begin()
    stage.clock.time += 1000
    stage.context.store.devices.mark_seen({one.id: stage.clock()})
    stage.advance()
    assert stage.has_task(one)
    assert not stage.has_task(two)


def test_over_selection_asks_more_and_expires_the_slowest(stage: Stage) -> None:
    devices = stage.begin(3, selection=SelectionSettings(devices=2, over_select=1.5))
    stage.advance()
    plans = [stage.plan(device) for device in devices]
    for device, plan in zip(devices[:2], plans[:2], strict=True):
        stage.upload(device, plan)
    stage.advance()
    assert stage.upload(devices[2], plans[2]) is Outcome.LATE


def test_the_federation_ends_after_its_last_round_and_devices_are_told(stage: Stage) -> None:
    devices = stage.begin(rounds=RoundSettings(count=2, deadline=60, at_least=1))
    for _ in range(2):
        stage.advance()
        for device in devices:
            stage.do(device)
        stage.advance(2)
    stage.advance()
    assert all(assignment(stage.context, device).finished for device in devices)


def test_the_same_seed_gives_the_same_model_whoever_answers_first(tmp_path: Path) -> None:
    models = []
    for run, order in enumerate(([0, 1, 2], [2, 0, 1])):
        folder = tmp_path / str(run)
        folder.mkdir()
        context = make_context(folder, Clock())
        intake = UploadQueue(context)
        intake.start()
        stage = Stage(context, Clock(), intake)
        devices = stage.begin(3, selection=SelectionSettings(devices=3))
        for _ in range(3):
            stage.advance()
            for one in order:
                stage.do(devices[one], shift=0.1 * (one + 1), samples=one + 5)
            stage.advance(2)
        models.append(stage.weights(2))
        intake.stop()
        context.store.close()
    for name, array in models[0].items():
        np.testing.assert_array_equal(array, models[1][name])


def test_paused_it_ends_the_open_round_and_opens_no_other(stage: Stage) -> None:
    devices = stage.begin()
    stage.advance()
    assert stage.federation is not None
    move(stage.context, stage.federation.id, Verb.PAUSE)
    for device in devices:
        stage.do(device)
    stage.advance(2)
    assert stage.state == RoundState.DONE
    assert stage.advance() > 0
    assert stage.round.number == 0
    move(stage.context, stage.federation.id, Verb.RESUME)
    stage.advance()
    assert stage.round.number == 1


def test_aborted_it_gives_no_more_tasks(stage: Stage) -> None:
    one, _ = stage.begin()
    stage.advance()
    plan = stage.plan(one)
    assert stage.federation is not None
    move(stage.context, stage.federation.id, Verb.ABORT, "enough seen")
    assert assignment(stage.context, one).finished
    body = answer(stage.context, plan)
    assert stage.upload(one, plan, body) is Outcome.LATE
