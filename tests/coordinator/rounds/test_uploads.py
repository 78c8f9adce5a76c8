"""Uploads: what becomes of an update, and what it may not do."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from coordinator.errors import CoordinatorError, ErrorReason
from coordinator.storage.records import TaskState
from edgefl.errors import WireFormatError
from edgefl.federation.settings import RoundSettings as RoundSettings
from edgefl.federation.settings import (
    SelectionSettings,
    UploadLimits,
)
from edgefl.values import Outcome
from edgefl.wire import Dense, decode_result, encode_result
from tests.coordinator.fleet import answer
from tests.coordinator.stage import Stage
from tests.device_runtime.federation import bundle


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


def test_an_update_that_moves_the_model_too_far_is_refused_and_the_task_stays_open(stage: Stage) -> None:
    one, _ = stage.begin(limits=UploadLimits(most_movement=1.0))
    stage.advance()
    with pytest.raises(Exception, match="moves the model"):
        stage.do(one, shift=1000.0)
    assert stage.do(one, shift=0.001) is Outcome.ACCEPTED


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


def test_what_cannot_be_noted_costs_no_update(stage: Stage) -> None:
    one, *_ = stage.begin(1, selection=SelectionSettings(devices=1))
    stage.context.store.devices.set_corrections({one.id: '{"schema": "edgefl.correction/99"}'})
    stage.advance()
    assert stage.do(one) is Outcome.ACCEPTED
    assert stage.intake.alive
