"""Two federations whose devices have the same names: each is as if the other did not exist, to the bit."""

from dataclasses import replace

import numpy as np

from coordinator.federations.lifecycle import new_key
from coordinator.federations.telemetry_table import rows
from coordinator.federations.tokens import hash_of
from coordinator.storage.records import Admission, Device
from edgefl.federation.settings import RoundSettings, SelectionSettings
from edgefl.values import dumps
from tests.coordinator.fleet import running
from tests.coordinator.stage import Stage
from tests.values.samples import PROFILE

NAMES = ("device", "device-0", "device-1")


def enrol_named(stage: Stage, federation: str, name: str) -> Device:
    asking = replace(
        TEMPLATE,
        id=name,
        enrolment_id=f"{federation}-{name}",
        token_hash=hash_of(f"{federation}-{name}"),
        enrolled_at=stage.clock(),
        seen_at=stage.clock(),
    )
    admission, device = stage.context.store.devices.enrol(asking, hash_of(new_key(stage.context, federation)[1]))
    assert admission is Admission.ADMITTED
    assert device is not None
    return device


def play(stage: Stage, federation: str) -> None:
    stage.federation = stage.context.store.federations.get(federation)
    for _ in range(2):
        stage.advance()
        devices = [device for device in stage.context.store.devices.of(federation) if stage.has_task(device)]
        assert len(devices) == 2
        for device in devices:
            plan = stage.plan(device)
            assert plan.device_id == device.name
            stage.upload(device, plan, shift=0.1 + len(device.name), samples=7 + plan.round)
        stage.advance(2)


def test_federations_with_the_same_names_have_the_same_models_and_their_own_records(stage: Stage) -> None:
    settings = {"rounds": RoundSettings(count=2, deadline=60), "selection": SelectionSettings(devices=2)}
    for federation in ("first", "second"):
        running(stage.context, name=federation, **settings)
        for name in NAMES:
            assert enrol_named(stage, federation, name).name == name
    for federation in ("first", "second"):
        play(stage, federation)
    store = stage.context.store
    models = [
        stage.context.repository.arrays(store.rounds.of(federation)[-1].next_model or "")
        for federation in ("first", "second")
    ]
    for name, array in models[0].items():
        np.testing.assert_array_equal(array, models[1][name], strict=True)
    for federation in ("first", "second"):
        assert {row["device"] for row in rows(store, federation)} <= set(NAMES)
        assert sum(device.done for device in store.devices.of(federation)) == 4
        found = store.devices.named(federation, "device-1")
        assert found is not None
        assert found.federation == federation
    assert store.devices.named("third", "device-1") is None


def test_a_name_is_taken_within_a_federation_whoever_came_first(stage: Stage) -> None:
    for federation in ("first", "second"):
        running(stage.context, name=federation)
    enrol_named(stage, "first", "device")
    enrol_named(stage, "second", "device")
    for federation in ("first", "second"):
        again = replace(TEMPLATE, id="device", enrolment_id="another", token_hash=hash_of("another"))
        key = hash_of(new_key(stage.context, federation)[1])
        assert stage.context.store.devices.enrol(again, key)[0] is Admission.NAME_TAKEN


TEMPLATE = Device(
    id="",
    federation="",
    enrolment_id="",
    token_hash="",
    key="",
    profile=dumps(PROFILE),
    software="edgefl 0",
    enrolled_at=0.0,
    seen_at=0.0,
)
