"""Devices whose software cannot do a federation's tasks get none, and their operator sees why."""

from dataclasses import replace

from coordinator.storage.records import Device, FederationState
from edgefl.federation.settings import RoundSettings, SelectionSettings, StrategyChoice
from edgefl.values import Capabilities, dumps
from tests.coordinator.stage import Stage
from tests.values.samples import CAPABILITIES

LACKING = replace(CAPABILITIES, rules=("fine_tune",))
REASON = "its client edgefl-java 0.1.0 lacks the rule 'sgd'"


def say(stage: Stage, device: Device, capabilities: Capabilities) -> None:
    stage.context.store.devices.set_capabilities(device.id, dumps(capabilities))


def known(stage: Stage, device: Device) -> Device:
    found = stage.context.store.devices.get(device.id)
    assert found is not None
    return found


def reason_of(stage: Stage) -> str | None:
    assert stage.federation is not None
    federation = stage.context.store.federations.get(stage.federation.id)
    assert federation is not None
    return federation.reason


def test_a_device_that_lacks_the_rule_gets_no_task_and_the_others_do(stage: Stage) -> None:
    one, two = stage.begin(2)
    say(stage, two, LACKING)
    stage.advance(2)
    assert stage.has_task(one)
    assert not stage.has_task(two)
    assert known(stage, two).left_out == REASON
    assert known(stage, one).left_out is None


def test_if_all_lack_it_the_federation_says_why_it_waits_until_their_software_is_better(stage: Stage) -> None:
    devices = stage.begin(3)
    for device in devices:
        say(stage, device, LACKING)
    stage.advance(2)
    assert reason_of(stage) == (
        f"waiting for devices: 3 are available, but only 0 can do a task (3 left out: {REASON})"
    )
    assert stage.context.store.devices.left_out("digits") == {device.name: REASON for device in devices}
    for device in devices:
        say(stage, device, CAPABILITIES)
    assert stage.context.store.devices.left_out("digits") == {}
    stage.advance(2)
    assert sum(stage.has_task(device) for device in devices) == 2
    assert reason_of(stage) is None


def test_a_device_that_said_nothing_is_not_asked_for_what_was_added_since(stage: Stage) -> None:
    one, two = stage.begin(2, strategy=StrategyChoice(name="hermes"), selection=SelectionSettings(devices=2))
    say(stage, one, replace(CAPABILITIES, rules=("sgd", "sgd.sensitivity")))
    stage.advance(2)
    assert stage.has_task(one)
    assert not stage.has_task(two)
    assert known(stage, two).left_out == (
        "its client edgefl-python of an older version lacks the setting 'sensitivity' of the rule 'sgd'"
    )


def test_personalisation_goes_on_without_who_cannot_fine_tune(stage: Stage) -> None:
    choice = StrategyChoice(name="fedavg", settings={"fine_tune_epochs": 1})
    rounds, selection = RoundSettings(count=1), SelectionSettings(devices=2)
    one, two = stage.begin(2, strategy=choice, rounds=rounds, selection=selection)
    say(stage, two, replace(CAPABILITIES, rules=("sgd",)))
    stage.advance(2)
    for device in (one, two):
        stage.do(device)
    stage.advance(3)
    assert stage.has_task(one)
    assert not stage.has_task(two)
    assert known(stage, two).left_out == "its client edgefl-java 0.1.0 lacks the rule 'fine_tune'"
    assert stage.context.store.federations.get("digits").state is FederationState.RUNNING  # type: ignore[union-attr]
