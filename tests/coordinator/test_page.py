"""What the coordinator's page is told: states of devices, changes, charts, masks; with a clock that the test moves."""

import json
from typing import Any

import pytest
from sqlalchemy import update

from coordinator.errors import CoordinatorError
from coordinator.federations.join_codes import join_line, qr_code
from coordinator.federations.lifecycle import Verb, change_deadline, existing, move
from coordinator.http.routes.conversion import LIVE_JSON
from coordinator.page.charts import Charts
from coordinator.page.device_rows import COLUMNS, DeviceRows, row_of
from coordinator.page.live_snapshot import LiveSnapshot
from coordinator.rounds.state_machine import RoundStateMachine
from coordinator.storage.tables import rounds as rounds_table
from edgefl.federation.settings import BufferingSettings, FederationMode, StrategyChoice
from edgefl.values import Reason, Refusal, dumps
from tests.coordinator.stage import Stage


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


def test_a_view_tells_everything_once_and_then_what_changes(stage: Stage) -> None:
    devices = stage.begin(2)
    view = LiveSnapshot(stage.context, "digits", LIVE_JSON)
    first = view.refresh(())
    assert first["federation"]["state"] == "running"
    assert first["progress"] is None
    assert view.refresh(()).keys() == {"now"}
    stage.advance()
    news = view.refresh(())
    assert news["progress"] | {"selected": 2, "waiting": 2, "training": 0} == news["progress"]
    assert [one["number"] for one in news["rounds"]] == [0]
    stage.do(devices[0])
    hand_out(stage)
    assert view.refresh(())["progress"]["arrived"] == 1
    stage.do(devices[1])
    stage.advance(2)
    news = view.refresh(())
    assert (news["progress"]["state"], news["rounds"][0]["state"]) == ("done", "done")
    everything = view.everything()
    assert everything["rounds"] == news["rounds"]
    assert everything["fleet"]["columns"] == COLUMNS
    assert len(everything["fleet"]["rows"]) == 2
    json.dumps(everything, allow_nan=False)


def test_charts_have_a_point_for_every_round_that_is_done(stage: Stage) -> None:
    devices = stage.begin(2)
    charts = Charts(stage.context)
    assert charts.rounds("digits") == []
    for _ in range(2):
        stage.advance()
        for device in devices:
            stage.do(device)
        stage.advance(2)
    found = {one["name"]: one for one in charts.rounds("digits")}
    assert {"training-loss", "traffic", "energy", "time", "fates"} <= found.keys()
    assert all(trace["x"] == [1, 2] for one in found.values() for trace in one["spec"]["traces"])
    fates = found["fates"]["spec"]["traces"]
    assert [(trace["name"], trace["y"]) for trace in fates] == [("arrived", [2, 2])]


def test_masks_show_the_latest_rounds_parts_and_what_the_planner_says(stage: Stage) -> None:
    charts = Charts(stage.context)
    stage.begin(2)
    assert charts.masks("digits")["round"] is None
    stage.advance()
    stage.context.store.rounds.note_plan("digits", 0, json.dumps({"bias": 12.5, "bias_bound": 11.0}))
    found = charts.masks("digits")
    assert (found["round"], found["devices"]) == (0, 2)
    assert [one["name"] for one in found["charts"][:2]] == ["layers", "coverage"]
    said = {name: figure for name, figure, _ in found["plan"]}
    assert said["Bias of the average"] == "0"
    assert said["Bound"] == "11"


def test_a_device_has_charts_of_what_was_predicted_and_measured(stage: Stage) -> None:
    devices = stage.begin(1)
    stage.advance()
    stage.do(devices[0])
    history = [row_of(task) for task in stage.context.store.tasks.of("digits", device="device-0")]
    found = {one["name"]: one for one in Charts(stage.context).device(history)}
    assert [trace["name"] for trace in found["device-step"]["spec"]["traces"]] == ["measured", "predicted"]
    assert Charts(stage.context).device([]) == []


def test_a_strategy_that_freezes_layers_says_what_it_thinks_of_its_plan(stage: Stage) -> None:
    stage.begin(2, strategy=StrategyChoice(name="perfedmask"))
    stage.advance()
    assert {"bias", "untrained_parameters"} <= json.loads(stage.round.plan).keys()


def test_a_new_deadline_holds_for_the_open_round_and_the_next(stage: Stage) -> None:
    devices = stage.begin(2)
    stage.advance()
    before = stage.round.deadline_at
    changed = change_deadline(stage.context, "digits", 600.0)
    assert stage.round.deadline_at == before + 540
    assert stage.context.library.settings(changed).rounds.deadline == 600
    stage.clock.time += 100  # beyond the old one
    stage.advance()
    assert stage.state == "open"
    assert stage.plan(devices[0]).deadline_seconds == pytest.approx(500)
    change_deadline(stage.context, "digits", 30.0)
    for device in devices:
        stage.context.store.devices.mark_seen({device.id: stage.clock.time})
    stage.advance()
    assert stage.round.attempt == 2
    assert stage.round.deadline_at == stage.clock.time + 30


def test_the_deadline_of_a_federation_that_is_over_stays(stage: Stage) -> None:
    stage.begin(1)
    move(stage.context, "digits", Verb.ABORT)
    with pytest.raises(CoordinatorError, match="aborted"):
        change_deadline(stage.context, "digits", 5.0)


def test_a_join_line_is_safe_to_paste_and_its_code_is_an_image_without_script() -> None:
    assert join_line("https://10.0.0.5:8443", "edgefl-key-x").startswith(
        "edgefl join https://10.0.0.5:8443 --key edgefl-key-x"
    )
    assert "'https://a;rm -rf ~'" in join_line("https://a;rm -rf ~", "k")
    code = qr_code(join_line("https://10.0.0.5:8443", "edgefl-key-x"))
    assert code.startswith("<svg")
    assert "script" not in code


def test_a_round_that_diverged_has_no_loss_and_spoils_nothing(stage: Stage) -> None:
    devices = stage.begin(2)
    stage.advance()
    for device in devices:
        stage.do(device)
    stage.advance(2)
    report = json.dumps(json.loads(stage.round.report) | {"accuracy": 0.1, "test_loss": float("nan")})
    spoil = update(rounds_table).values(report=report)
    database = stage.context.store._database
    database.write(lambda connection: connection.execute(spoil) and None)
    view = LiveSnapshot(stage.context, "digits", LIVE_JSON)
    view.refresh(())
    everything = json.dumps(view.everything(), allow_nan=False)
    assert json.loads(everything)["rounds"][0]["report"]["test_loss"] is None
    assert "loss" not in {one["name"] for one in Charts(stage.context).rounds("digits")}


def test_what_comes_late_is_seen_in_the_chart(stage: Stage) -> None:
    devices = stage.begin(2)
    stage.advance()
    late = stage.plan(devices[1])
    stage.do(devices[0])
    stage.clock.time += 61
    stage.advance(2)
    charts = Charts(stage.context)
    assert ends(charts) == {"arrived": [1], "lost": [1]}
    stage.upload(devices[1], late)
    assert ends(charts) == {"arrived": [1], "late": [1]}


def ends(charts: Charts) -> dict[str, list[int]]:
    found = next(one for one in charts.rounds("digits") if one["name"] == "fates")
    return {trace["name"]: trace["y"] for trace in found["spec"]["traces"]}


def test_in_buffered_mode_everybody_who_is_at_work_counts(stage: Stage) -> None:
    devices = stage.begin(4, mode=FederationMode.BUFFERED, buffering=BufferingSettings(size=2, at_once=4))
    stage.advance()
    for device in devices[:2]:
        stage.do(device)
    stage.advance(3)  # the buffer is full: the next round is open, and two devices still have a task of the first
    progress = LiveSnapshot(stage.context, "digits", LIVE_JSON).refresh(())["progress"]
    assert progress["round"] == 1
    assert progress["waiting"] + progress["training"] == stage.context.store.tasks.count_open("digits") > 1


def test_a_deadline_that_changes_while_a_round_is_planned_is_not_lost(stage: Stage) -> None:
    stage.begin(2)
    planned_for = existing(stage.context, "digits")
    change_deadline(stage.context, "digits", 600.0)
    RoundStateMachine(stage.context, planned_for).advance()
    assert stage.context.store.rounds.latest("digits") is None  # it would have the old one, and is not opened
    stage.advance()
    assert stage.round.deadline_at == stage.clock.time + 600


def test_further_tasks_leave_a_changed_deadline_alone(stage: Stage) -> None:
    stage.begin(2)
    stage.advance()
    before = stage.round
    change_deadline(stage.context, "digits", 600.0)
    attempt = before.attempt
    assert stage.context.store.rounds.add_tasks(
        "digits", 0, [], [], attempt=attempt, next_attempt=attempt, deadline_at=None
    )
    assert stage.round.deadline_at == before.deadline_at + 540
