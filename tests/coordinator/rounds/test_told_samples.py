"""Rounds are planned by the number of samples that a device tells. Its weight in an average does not come from it."""

import numpy as np
import pytest

from coordinator.storage.records import Device
from device_runtime.agent.own_capabilities import own_capabilities
from edgefl.federation.settings import RoundSettings, SelectionSettings, StrategyChoice
from edgefl.values import LARGEST_INTEGER, LocalWork, dumps
from tests.coordinator.stage import Stage

# Half a second of training: enough for ten epochs of 120 samples, and of 1,000 not even with the narrowest submodel.
SHORT = RoundSettings(count=3, deadline=1.0, at_least=1)
WORK = LocalWork(epochs=10, batch_size=32)


def say(stage: Stage, device: Device, samples: int) -> None:
    stage.context.store.devices.set_samples(device.id, samples)


def known(stage: Stage, device: Device) -> Device:
    found = stage.context.store.devices.get(device.id)
    assert found is not None
    return found


def test_devices_that_tell_their_samples_take_part_from_the_first_round_of_a_short_deadline(stage: Stage) -> None:
    devices = stage.begin(4, rounds=SHORT, work=WORK, selection=SelectionSettings(devices=4))
    for device in devices[:2]:
        say(stage, device, 120)
    stage.advance(2)
    assert [stage.has_task(device) for device in devices] == [True, True, False, False]
    reason = known(stage, devices[2]).left_out
    assert reason is not None
    assert "nothing fits its budget" in reason, "planned with 1,000 samples, which nobody told"
    for device in devices[2:]:
        say(stage, device, 120)
    assert known(stage, devices[2]).left_out is None
    for device in devices[:2]:
        stage.do(device, samples=120)
    stage.advance(3)
    assert all(stage.has_task(device) for device in devices)


def test_a_result_and_the_device_replace_each_others_number(stage: Stage) -> None:
    one, _ = stage.begin(2)
    say(stage, one, 20)
    stage.advance(2)
    stage.do(one, samples=30)
    assert known(stage, one).samples == 30
    say(stage, one, 40)
    assert known(stage, one).samples == 40


@pytest.mark.parametrize("told", [0, 1, LARGEST_INTEGER])
@pytest.mark.parametrize("name", ["fedavg", "hermes", "perfedmask"])
def test_whatever_number_a_device_tells_the_others_get_their_tasks(stage: Stage, name: str, told: int) -> None:
    choice, selection = StrategyChoice(name=name), SelectionSettings(devices=3)
    *honest, hostile = stage.begin(3, strategy=choice, selection=selection)
    for device in (*honest, hostile):
        stage.context.store.devices.set_capabilities(device.id, dumps(own_capabilities("onnx")))
        say(stage, device, 50)
    say(stage, hostile, told)
    stage.advance(2)
    assert all(stage.has_task(device) for device in honest)
    assert stage.has_task(hostile) == (told < LARGEST_INTEGER), "no deadline is long enough for so many samples"


def test_a_round_does_not_wait_for_a_device_that_tells_too_many(stage: Stage) -> None:
    one, two, hostile = stage.begin(3, selection=SelectionSettings(devices=3))
    for device, told in ((one, 50), (two, 50), (hostile, LARGEST_INTEGER)):
        say(stage, device, told)
    stage.advance(2)
    stage.do(one)
    stage.do(two)
    stage.advance(3)
    assert stage.round.number == 1


@pytest.mark.parametrize("told", [0, LARGEST_INTEGER])
def test_a_told_number_has_no_weight_in_the_average(stage: Stage, told: int) -> None:
    one, hostile = stage.begin(2)
    stage.advance(2)
    plans = [stage.plan(one), stage.plan(hostile)]
    before = stage.context.repository.arrays(stage.round.model)
    say(stage, hostile, told)
    stage.upload(one, plans[0], shift=1.0, samples=10)
    stage.upload(hostile, plans[1], shift=3.0, samples=10)
    stage.advance(2)
    after = stage.weights(0)
    moved = {float(np.round(np.mean(after[name] - before[name]), 4)) for name in after if name.endswith("weight")}
    assert moved == {2.0}
