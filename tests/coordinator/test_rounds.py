"""What rounds do, move by move, with a clock that the test moves."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coordinator.errors import CoordinatorError, ErrorReason
from coordinator.federations.lifecycle import Verb, move
from coordinator.federations.overview import overview_of
from coordinator.rounds.evaluation import Evaluator
from coordinator.rounds.state_machine import RoundStateMachine
from coordinator.rounds.uploads import UploadQueue, refuse
from coordinator.storage.blobs import Spooled
from coordinator.storage.records import Device, FederationState, RoundState, TaskState
from edgefl.artifacts.submodel import bundle_weights
from edgefl.errors import DataError, WireFormatError
from edgefl.federation.settings import (
    BudgetCaps,
    BufferingSettings,
    EvaluationSettings,
    FederationMode,
    SelectionSettings,
    StrategyChoice,
    UploadLimits,
)
from edgefl.federation.settings import RoundSettings as RoundSettings
from edgefl.local_rules.submodel_channels import prunable_groups
from edgefl.masks import full_mask
from edgefl.model_graph import TensorRole
from edgefl.values import LARGEST_INTEGER, LocalWork, Outcome, Reason, Refusal
from edgefl.wire import Counts, Dense, decode, decode_result, encode_result
from tests.coordinator.fleet import Clock, answer, enrol, make_context, tuned
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


def test_who_has_the_whole_model_downloads_what_is_stored_of_it_and_nothing_is_read_back(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = stage.begin()
    asked: list[str] = []
    size = stage.context.blobs.size

    def noted(digest: str) -> int | None:
        asked.append(digest)
        return size(digest)

    monkeypatch.setattr(stage.context.blobs, "size", noted)
    stage.advance()
    assert stage.plan(one).weights == stage.round.model
    assert asked.count(stage.round.model) == 1  # for both devices
    stage.do(one, shift=1.0)
    stage.do(two, shift=2.0)
    stage.advance()
    kept: list[int] = []
    put_all = stage.context.blobs.put_all

    def counted(bodies: Sequence[bytes | Spooled]) -> list[str]:
        kept.extend(len(body) for body in bodies if isinstance(body, bytes))
        return put_all(bodies)

    monkeypatch.setattr(stage.context.blobs, "put_all", counted)
    read: list[str] = []
    monkeypatch.setattr(stage.context.blobs, "get", read.append)
    stage.advance(2)
    model = stage.round.model
    assert stage.plan(one).weights == model
    assert sum(size == stage.context.blobs.size(model) for size in kept) == 1  # once, as the result of the round
    assert not read
    monkeypatch.undo()
    stored = decode(stage.context.blobs.get(model)).arrays
    remembered = stage.context.library.arrays(model)
    assert list(stored) == list(remembered)
    for name, array in stored.items():
        assert np.array_equal(array, remembered[name])
        assert not remembered[name].flags.writeable


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


def test_a_late_update_is_told_so_and_changes_nothing(stage: Stage) -> None:
    one, two = stage.begin()
    stage.advance()
    slow = stage.plan(two)
    body = answer(stage.context, slow, 9.0)
    stage.do(one)
    stage.clock.time += 61
    stage.advance(2)
    before = stage.weights(0)
    assert stage.upload(two, slow, body) is Outcome.LATE
    assert stage.upload(two, slow, body) is Outcome.LATE
    task = stage.context.store.tasks.get(slow.task_id)
    assert task is not None
    assert task.state is TaskState.LATE
    assert task.result is not None
    assert stage.weights(0) is before


def test_the_same_update_twice_counts_once_and_another_one_is_a_conflict(stage: Stage) -> None:
    one, two = stage.begin()
    stage.advance()
    plan = stage.plan(one)
    assert stage.upload(one, plan, shift=1.0) is Outcome.ACCEPTED
    assert stage.upload(one, plan, shift=1.0) is Outcome.ALREADY
    with pytest.raises(CoordinatorError) as problem:
        stage.upload(one, plan, shift=2.0)
    assert problem.value.reason is ErrorReason.CONFLICT
    with pytest.raises(CoordinatorError) as problem:
        stage.upload(two, plan, shift=1.0)
    assert problem.value.reason is ErrorReason.NOT_FOUND


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


def test_evaluation_that_fails_is_told_and_stops_no_round(stage: Stage) -> None:
    devices = stage.begin(evaluation=EvaluationSettings(data="digits"))
    stage.advance()
    for device in devices:
        stage.do(device)
    stage.advance()
    assert stage.federation is not None

    def fail(weights: object) -> Any:
        raise DataError("the data are gone", fix="Bring them back.")

    RoundStateMachine(stage.context, stage.federation, fail).advance()
    assert stage.state == RoundState.DONE
    assert "the data are gone" in json.loads(stage.round.report)["evaluation_error"]


def test_counts_do_not_lift_the_limit_of_movement(stage: Stage) -> None:
    one, two = stage.begin(limits=UploadLimits(most_movement=10.0))
    stage.advance()
    plan = stage.plan(one)
    report = decode_result(answer(stage.context, plan, 0.001), bundle().graph)
    counts = {
        name: Dense(np.array(2**62)) if isinstance(tensor, Dense) and tensor.array.dtype == np.int64 else tensor
        for name, tensor in report.tensors.items()
    }
    stage.upload(one, plan, encode_result(replace(report, tensors=counts), bundle().graph))
    stage.do(two, shift=0.001)
    stage.advance(3)
    with pytest.raises(WireFormatError, match="moves the model"):
        stage.do(one, shift=1e9)


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


def test_an_update_that_moves_the_model_too_far_is_refused_and_the_task_stays_open(stage: Stage) -> None:
    one, _ = stage.begin(limits=UploadLimits(most_movement=1.0))
    stage.advance()
    with pytest.raises(Exception, match="moves the model"):
        stage.do(one, shift=1000.0)
    assert stage.do(one, shift=0.001) is Outcome.ACCEPTED


def test_updates_are_forgotten_once_their_round_is_done_and_models_are_not(stage: Stage) -> None:
    devices = stage.begin()
    updates = []
    for _ in range(2):
        stage.advance()
        for device in devices:
            plan = stage.plan(device)
            stage.upload(device, plan)
            task = stage.context.store.tasks.get(plan.task_id)
            assert task is not None
            updates.append(task.update)
        stage.advance(2)
    assert all(stage.context.blobs.size(digest) is None for digest in updates if digest)
    assert stage.weights(0) is not None


def test_the_global_model_is_evaluated_on_the_coordinators_data(stage: Stage) -> None:
    devices = stage.begin(evaluation=EvaluationSettings(data="digits"))
    stage.advance()
    for device in devices:
        stage.do(device, shift=0.0)
    stage.advance()
    assert stage.federation is not None
    evaluator = Evaluator(bundle(), EvaluationSettings(data="digits"))
    RoundStateMachine(stage.context, stage.federation, evaluator.score).advance()
    report = json.loads(stage.round.report)
    assert 0 <= report["accuracy"] <= 1
    assert report["test_samples"] > 100


def test_a_cancelled_upload_stops_no_other(stage: Stage) -> None:
    one, two = stage.begin()
    stage.advance()
    plan = stage.plan(one)

    async def cancelled() -> None:
        upload = asyncio.ensure_future(stage.intake.deliver(one, plan.task_id, answer(stage.context, plan), 1000))
        await asyncio.sleep(0)
        upload.cancel()
        await asyncio.gather(upload, return_exceptions=True)

    asyncio.run(cancelled())
    assert stage.do(two) is Outcome.ACCEPTED
    assert stage.intake.alive


class TestBuffered:
    """Nobody waits for anybody."""

    def begin(self, stage: Stage, devices: int = 3, **changes: Any) -> list[Device]:
        buffering = BufferingSettings(**({"size": 2, "at_once": 3} | changes))
        rounds = RoundSettings(count=3, deadline=60, at_least=1)
        return stage.begin(devices, mode=FederationMode.BUFFERED, buffering=buffering, rounds=rounds)

    def test_a_full_buffer_makes_a_model_and_the_slow_device_counts_in_the_next_with_less_weight(
        self, stage: Stage
    ) -> None:
        devices = self.begin(stage)
        stage.advance()
        slow = stage.plan(devices[2])
        late = answer(stage.context, slow, 4.0)
        stage.do(devices[0], shift=1.0)
        stage.do(devices[1], shift=1.0)
        stage.advance(3)
        assert stage.round.number == 1
        assert stage.upload(devices[2], slow, late) is Outcome.ACCEPTED
        stage.advance()
        stage.do(devices[0], shift=1.0)
        stage.advance(2)
        assert stage.federation is not None
        done = stage.context.store.rounds.get(stage.federation.id, 1)
        assert done is not None
        assert json.loads(done.report or "{}")["stale_updates"] == 1
        trust = 2**-0.5
        moved = (1.0 + trust * 4.0) / (1.0 + trust)
        name = bundle().graph.tensors[0].name
        np.testing.assert_allclose(stage.weights(1)[name], stage.weights(0)[name] + moved, rtol=1e-5, atol=1e-5)

    def test_an_update_that_is_too_old_is_late(self, stage: Stage) -> None:
        devices = self.begin(stage, size=1, most_staleness=1)
        stage.advance()
        slow = stage.plan(devices[2])
        body = answer(stage.context, slow)
        for _ in range(2):
            stage.do(devices[0])
            stage.advance(4)
        assert stage.upload(devices[2], slow, body) is Outcome.LATE

    def test_a_device_that_vanished_gives_its_place_to_another(self, stage: Stage) -> None:
        devices = self.begin(stage, at_once=1)
        stage.advance()
        first = next(device for device in devices if stage.has_task(device))
        stage.clock.time += 91
        others = [device for device in devices if device != first]
        stage.context.store.devices.mark_seen({device.id: stage.clock() for device in others})
        stage.advance(3)
        assert any(stage.has_task(device) for device in others)
        assert not stage.has_task(first)

    def test_while_a_model_is_made_an_update_is_asked_to_come_again(self, stage: Stage) -> None:
        devices = self.begin(stage)
        stage.advance()
        plans = [stage.plan(device) for device in devices]
        for device, plan in zip(devices[:2], plans[:2], strict=True):
            stage.upload(device, plan)
        stage.advance()
        with pytest.raises(CoordinatorError) as problem:
            stage.upload(devices[2], plans[2])
        assert problem.value.reason is ErrorReason.UNAVAILABLE
        assert problem.value.retry_seconds == 1
        stage.advance(2)
        assert stage.upload(devices[2], plans[2]) is Outcome.ACCEPTED

    def test_devices_at_work_can_deliver_although_none_is_free(self, stage: Stage) -> None:
        devices = stage.begin(
            4,
            mode=FederationMode.BUFFERED,
            buffering=BufferingSettings(size=2, at_once=4),
            rounds=RoundSettings(count=3, deadline=60, at_least=2),
        )
        stage.advance()
        plans = [stage.plan(device) for device in devices]
        for device, plan in zip(devices[:2], plans[:2], strict=True):
            stage.upload(device, plan)
            stage.context.store.devices.revoke(device.id, stage.clock())
        stage.advance(3)
        assert stage.round.number == 1
        for device, plan in zip(devices[2:], plans[2:], strict=True):
            assert stage.upload(device, plan) is Outcome.ACCEPTED

    def test_a_device_that_works_twice_on_one_model_does_not_do_the_same_twice(self, stage: Stage) -> None:
        (one,) = self.begin(stage, 1, size=2)
        stage.advance()
        first = stage.plan(one)
        stage.upload(one, first)
        stage.advance()
        second = stage.plan(one)
        assert first.round == second.round
        assert first.seed != second.seed


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
    with pytest.raises(WireFormatError, match="is not expected"):
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


def test_a_device_that_was_slower_than_predicted_gets_a_smaller_part(stage: Stage) -> None:
    slow = RoundSettings(count=8, deadline=5)
    one, *_ = stage.begin(1, rounds=slow, selection=SelectionSettings(devices=1), work=LocalWork(epochs=8))
    sizes = []
    for number in range(8):
        stage.advance()
        plan = stage.plan(one)
        sizes.append(stage.context.library.mask(bundle().graph, plan.mask_body).cost.parameters)
        assert plan.predicted is not None
        assert plan.predicted.seconds is not None
        measured = (4 if number < 4 else 1) * plan.predicted.seconds
        stage.upload(one, plan, answer(stage.context, plan, samples=1000, seconds=measured))
        stage.advance(2)
    assert sizes[0] > sizes[1] > sizes[3], sizes
    assert sizes[7] > sizes[4], sizes


def test_plans_that_do_not_adapt_stay_as_they_are(stage: Stage) -> None:
    fixed = BudgetCaps(adapt=False)
    one, *_ = stage.begin(
        1, rounds=RoundSettings(count=3, deadline=2), selection=SelectionSettings(devices=1), budget=fixed
    )
    masks = set()
    for _ in range(3):
        stage.advance()
        plan = stage.plan(one)
        masks.add(plan.mask)
        stage.upload(one, plan, answer(stage.context, plan, seconds=900.0))
        stage.advance(2)
    assert len(masks) == 1


TUNING = StrategyChoice(name="fedavg", settings={"fine_tune_epochs": 1})


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


def test_a_device_that_nothing_was_left_for_is_tried_again(stage: Stage) -> None:
    one, *_ = stage.begin(1, rounds=RoundSettings(count=3, deadline=60), selection=SelectionSettings(devices=1))
    for _ in range(9):
        stage.context.corrections.note_refusal(one.id, Reason.DEADLINE, 1800)
    half_life = 1800.0
    assert stage.context.corrections.of(one, half_life).seconds > 7
    stage.clock.time += 10 * half_life
    assert stage.context.corrections.of(one, half_life).seconds < 1.01


def test_what_cannot_be_noted_costs_no_update(stage: Stage) -> None:
    one, *_ = stage.begin(1, selection=SelectionSettings(devices=1))
    stage.context.store.devices.set_corrections({one.id: '{"schema": "edgefl.correction/99"}'})
    stage.advance()
    assert stage.do(one) is Outcome.ACCEPTED
    assert stage.intake.alive


def test_a_device_that_learned_a_mask_has_the_part_that_it_had(stage: Stage) -> None:
    fedmap = StrategyChoice(
        name="fedmap",
        settings={"granularity": "channel", "capacities": "0.25", "mask_rounds": 1, "weight_rounds": 1},
    )
    one, *_ = stage.begin(1, strategy=fedmap, selection=SelectionSettings(devices=1))
    stage.advance()
    groups = prunable_groups(full_mask(bundle().graph))
    counts = {f"m/{group.name}": Counts.of(np.ones(group.width, np.int64), 1) for group in groups}
    has = []
    for number in range(3):
        plan = stage.plan(one)
        body = answer(stage.context, plan)
        if number != 1:
            body = encode_result(replace(decode_result(body, bundle().graph), tensors=counts), bundle().graph)
        assert stage.upload(one, plan, body) is Outcome.ACCEPTED
        stage.advance(3)
        device = stage.context.store.devices.get(one.id)
        assert device is not None
        has.append((plan.mask_body, device.mask_body))
    (_, none), (given, trained), (whole, learned) = has
    assert none is None
    assert trained == learned == given != whole
