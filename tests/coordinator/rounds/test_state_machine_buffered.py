"""The state machine in buffered mode, with a clock that the test moves."""

import json
from typing import Any

import numpy as np
import pytest

from coordinator.errors import CoordinatorError, ErrorReason
from coordinator.storage.records import Device
from edgefl.federation.settings import (
    BufferingSettings,
    FederationMode,
)
from edgefl.federation.settings import RoundSettings as RoundSettings
from edgefl.values import Outcome
from tests.coordinator.fleet import answer
from tests.coordinator.stage import Stage
from tests.device_runtime.federation import bundle


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
