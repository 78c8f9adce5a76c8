"""One row for each device: states, reasons, and what changed; with a clock that the test moves."""

import dataclasses
from typing import Any

from coordinator.federations.lifecycle import existing
from coordinator.page.device_rows import COLUMNS, DeviceRows
from coordinator.page.task_facts import facts_of
from coordinator.storage.records import Task
from edgefl.values import Reason, Refusal, Thermal, ThermalStatus, dumps
from tests.coordinator.stage import Stage
from tests.values.samples import PLAN, RESULT


def rows(stage: Stage, fleet: DeviceRows, *uploading: str) -> dict[str, dict[str, Any]]:
    assert stage.federation is not None
    fleet.refresh(existing(stage.context, stage.federation.id), uploading)
    return {device: dict(zip(COLUMNS, row, strict=True)) for device, row in fleet.rows.items()}


def hand_out(stage: Stage) -> None:
    stage.context.store.tasks.mark_handed_out(stage.context.take_handed())


def test_a_device_goes_from_idle_over_asked_training_and_uploading_to_idle_again(stage: Stage) -> None:
    devices = stage.begin(2)
    fleet = DeviceRows(stage.context, "digits")
    assert {row["state"] for row in rows(stage, fleet).values()} == {"idle"}
    stage.advance()
    assert {row["state"] for row in rows(stage, fleet).values()} == {"asked"}
    plan = stage.plan(devices[0])
    hand_out(stage)
    seen = rows(stage, fleet)
    assert (seen["device-0"]["state"], seen["device-1"]["state"]) == ("training", "asked")
    assert seen["device-0"]["since"] == round(stage.clock.time, 1)
    assert rows(stage, fleet, "device-0")["device-0"]["state"] == "uploading"
    stage.upload(devices[0], plan)
    done = rows(stage, fleet)["device-0"]
    assert (done["state"], done["why"], done["round"], done["done"]) == ("idle", None, 0, 1)
    assert (done["kept"], done["trained"]) == (1.0, 1.0)
    assert done["step_seconds"] > 0
    stage.do(devices[1])
    stage.advance(3)
    again = rows(stage, fleet)["device-0"]
    assert (again["state"], again["round"]) == ("asked", 1)
    assert again["step_seconds"] == done["step_seconds"]  # what it did last is still known
    assert done["energy_label"].startswith("estimated, ")


def test_a_refusal_says_why_until_the_next_task(stage: Stage) -> None:
    devices = stage.begin(1)
    stage.advance()
    plan = stage.plan(devices[0])
    said = dumps(Refusal(reason=Reason.TEMPERATURE, message="<b>81</b> degrees"))
    stage.context.store.uploads.refuse(plan.task_id, "device-0", said, stage.clock.time)
    fleet = DeviceRows(stage.context, "digits")
    row = rows(stage, fleet)["device-0"]
    assert (row["state"], row["why"]) == ("refused", "temperature: <b>81</b> degrees")


def test_who_is_not_heard_of_is_gone_but_not_while_it_trains(stage: Stage) -> None:
    devices = stage.begin(2)
    stage.advance()
    stage.plan(devices[0])
    hand_out(stage)
    stage.clock.time += 1000
    fleet = DeviceRows(stage.context, "digits")
    seen = rows(stage, fleet)
    assert (seen["device-0"]["state"], seen["device-1"]["state"]) == ("training", "gone")
    assert seen["device-1"]["why"] == "it has not fetched its task"


def test_a_look_returns_what_is_new_and_a_revoked_device_is_gone(stage: Stage) -> None:
    stage.begin(3)
    assert stage.federation is not None
    fleet = DeviceRows(stage.context, "digits")
    first, gone = fleet.refresh(stage.federation, ())
    assert (len(first), gone) == (3, [])
    assert fleet.refresh(stage.federation, ()) == ([], [])
    stage.context.store.devices.mark_seen({"device-0": stage.clock.time + 1})  # too little to be news
    assert fleet.refresh(stage.federation, ()) == ([], [])
    stage.context.store.devices.mark_seen({"device-0": stage.clock.time + 30})
    assert [row[0] for row in fleet.refresh(stage.federation, ())[0]] == ["device-0"]
    stage.context.store.devices.revoke("device-1", stage.clock.time)
    assert fleet.refresh(stage.federation, ()) == ([], ["device-1"])


def test_the_heat_of_a_task_is_said_in_words() -> None:
    def heat(thermal: Thermal | None) -> str | None:
        telemetry = dataclasses.replace(RESULT.telemetry, thermal=thermal)
        result = dumps(dataclasses.replace(RESULT, telemetry=telemetry))
        task = Task(id="t", federation="f", round=0, device="d", plan=dumps(PLAN), created_at=0.0, result=result)
        said: str | None = facts_of(task)["heat"]
        return said

    warm = Thermal(start_celsius=45, end_celsius=71.4, throttled=True, start_status=ThermalStatus.NONE)
    assert heat(warm) == "45 to 71 °C, none, throttled"
    assert heat(dataclasses.replace(warm, throttled=False, end_status=ThermalStatus.SEVERE)) == (
        "45 to 71 °C, none to severe"
    )
    assert heat(Thermal(throttled=False)) is None
    assert heat(None) is None
