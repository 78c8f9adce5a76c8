"""The charts of the coordinator's page."""

import json

from sqlalchemy import update

from coordinator.http.routes.conversion import LIVE_JSON
from coordinator.page.charts import Charts
from coordinator.page.device_rows import row_of
from coordinator.page.live_snapshot import LiveSnapshot
from coordinator.storage.tables import rounds as rounds_table
from edgefl.federation.settings import StrategyChoice
from tests.coordinator.stage import Stage


def ends(charts: Charts) -> dict[str, list[int]]:
    found = next(one for one in charts.rounds("digits") if one["name"] == "fates")
    return {trace["name"]: trace["y"] for trace in found["spec"]["traces"]}


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
