"""What those who watch a federation are sent."""

import json

from coordinator.http.routes.conversion import LIVE_JSON
from coordinator.page.device_rows import COLUMNS
from coordinator.page.live_snapshot import LiveSnapshot
from edgefl.federation.settings import BufferingSettings, FederationMode
from tests.coordinator.stage import Stage


def hand_out(stage: Stage) -> None:
    stage.context.store.tasks.mark_handed_out(stage.context.take_handed())


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


def test_in_buffered_mode_everybody_who_is_at_work_counts(stage: Stage) -> None:
    devices = stage.begin(4, mode=FederationMode.BUFFERED, buffering=BufferingSettings(size=2, at_once=4))
    stage.advance()
    for device in devices[:2]:
        stage.do(device)
    stage.advance(3)  # the buffer is full: the next round is open, and two devices still have a task of the first
    progress = LiveSnapshot(stage.context, "digits", LIVE_JSON).refresh(())["progress"]
    assert progress["round"] == 1
    assert progress["waiting"] + progress["training"] == stage.context.store.tasks.count_open("digits") > 1
