"""The routes of the coordinator's page: files under a strict policy, sessions, live events, actions."""

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from coordinator.federations.tokens import OperatorRole
from coordinator.http.routes.conversion import LIVE_JSON
from coordinator.page.live_updates import LiveUpdates
from coordinator.page.static_files import page_file
from tests.coordinator.http.site import Site, serving


@contextlib.contextmanager
def events(client: httpx.Client, name: str = "digits") -> Iterator[Iterator[tuple[str, Any]]]:
    with client.stream("GET", f"/v1/federations/{name}/live") as answer:
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert answer.headers["Cache-Control"] == "no-store"
        yield _read(answer.iter_lines())


def _read(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    kind = ""
    for line in lines:
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


def until(told: Iterator[tuple[str, Any]], key: str) -> Any:
    return next(data[key] for _, data in told if key in data)


def test_the_page_and_its_files_come_under_a_policy_that_allows_nothing_inline_and_nobody_else(site: Site) -> None:
    page = site.client().get("/")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = page.headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'")
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|https?://", page.text)
    names = re.findall(r'(?:src|href)="/page/([^"]+)"', page.text)
    assert "style.css" in names
    for name in names:
        file = site.client().get(f"/page/{name}")
        assert file.status_code == 200, name
        assert file.headers["Content-Security-Policy"] == policy
    known = site.client().get("/", headers={"If-None-Match": page.headers["ETag"]})
    assert (known.status_code, known.content) == (304, b"")
    plain = site.client().get("/", headers={"Accept-Encoding": "gzip;q=0"})
    assert "Content-Encoding" not in plain.headers
    assert plain.headers["ETag"] != page.headers["ETag"]
    assert plain.content == page.content


def test_the_charting_library_comes_packed_from_here(site: Site) -> None:
    answer = site.client().get("/page/plotly.js")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert int(answer.headers["Content-Length"]) < 2_000_000 < len(answer.content)


@pytest.mark.parametrize("name", ["none.js", "index.py", "..%2ffiles.py", "Main.js", "style.css.js", "a" * 60 + ".js"])
def test_nothing_but_the_files_of_the_page_is_found(site: Site, name: str) -> None:
    answer = site.client().get(f"/page/{name}")
    assert answer.status_code in (404, 422)
    assert answer.json()["error"]["fix"]
    assert page_file("../files.py") is None


def test_a_session_says_what_the_token_is_good_for(site: Site) -> None:
    assert site.admin.get("/v1/session").json()["role"] == "admin"
    seen = site.client(site.tokens[OperatorRole.VIEWER]).get("/v1/session").json()
    assert (seen["role"], seen["charts"]) == ("viewer", True)
    assert "plotly.js-style-global" in seen["style_ids"]
    assert site.client("edgefl-admin-wrong").get("/v1/session").status_code == 401


def test_a_viewer_looks_and_changes_nothing(site: Site) -> None:
    viewer = site.client(site.tokens[OperatorRole.VIEWER])
    assert viewer.get("/v1/federations/digits").status_code == 200
    for method, path, body in (
        ("POST", "/pause", {}),
        ("POST", "/abort", {}),
        ("POST", "/keys", {}),
        ("GET", "/keys", None),
        ("PUT", "/deadline", {"seconds": 10}),
        ("DELETE", "/devices/asleep-digits", None),
        ("GET", "/model", None),
        ("GET", "/devices/asleep-digits/model", None),
    ):
        answer = viewer.request(method, f"/v1/federations/digits{path}", json=body)
        assert (answer.status_code, path) == (403, path)
    assert site.admin.get("/v1/federations/digits").json()["state"] == "running"


def test_watching_begins_with_everything_and_goes_on_with_what_changes(site: Site) -> None:
    site.federation("watched")
    token = site.device("pi-1", "watched")
    with events(site.client(site.tokens[OperatorRole.VIEWER]), "watched") as told:
        kind, everything = next(told)
        assert kind == "snapshot"
        ids = [row[0] for row in everything["fleet"]["rows"]]
        assert ids == ["asleep-watched", "pi-1"]
        site.open_round("pi-1", federation="watched")
        assert until(told, "progress")["selected"] == 2
        with site.agent(token) as agent:
            assert agent.poll(0).plan is not None
        assert until(told, "progress")["training"] == 1
        assert site.admin.delete("/v1/federations/watched/devices/pi-1").status_code == 204
        assert until(told, "fleet")["gone"] == ["pi-1"]
        assert next(kind for kind, _ in told if kind == "beat")


def test_what_is_not_there_cannot_be_watched(site: Site) -> None:
    viewer = site.client(site.tokens[OperatorRole.VIEWER])
    for path in ("none/live", "none/charts", "none/masks", "none/devices/x/page", "digits/devices/x/page"):
        assert viewer.get(f"/v1/federations/{path}").status_code == 404


def test_a_coordinator_that_stops_ends_every_connection_at_once(folder: Any) -> None:
    with serving(folder) as site:
        site.federation()
        with events(site.admin) as told:
            assert next(told)[0] == "snapshot"
            site.server.should_exit = True
            with contextlib.suppress(httpx.HTTPError):
                assert len(list(told)) < 5


def test_a_devices_page_has_its_profile_its_plan_and_its_history(folder: Any) -> None:
    with serving(folder) as site:
        site.federation()
        token = site.device("pi-1")
        task = site.open_round("pi-1")[0]
        with site.agent(token) as agent:
            agent.poll(0)
            agent.upload(task, site.update(task))
        found = site.admin.get("/v1/federations/digits/devices/pi-1/page").json()
        assert found["device"]["profile"]["device_name"]
        assert found["plan"]["task_id"] == task
        assert [(one["round"], one["state"]) for one in found["tasks"]] == [(0, "done")]
        assert {one["name"] for one in found["charts"]} >= {"device-step", "device-memory"}


def test_a_key_for_an_address_comes_with_a_line_and_a_code(site: Site) -> None:
    made = site.admin.post("/v1/federations/digits/keys", json={"address": "https://10.0.0.5:8443"}).json()
    uri = f"https://10.0.0.5:8443/join#key={made['key']}&federation=digits"
    assert made["join"].split()[:3] == [f"EDGEFL_JOIN_URI='{uri}'", "edgefl", "join"]
    assert made["qr"].startswith("<svg")
    plain = site.admin.post("/v1/federations/digits/keys", json={}).json()
    assert (plain["join"], plain["qr"]) == (None, None)
    for address in ("http://raspberrypis.local:8000", "https://devices.example.org"):
        assert site.admin.post("/v1/federations/digits/keys", json={"address": address}).status_code == 201
    for address in ("javascript:alert(1)", "http://10.0.0.1/a b; rm", "http://10.0.0.1/\t"):
        assert site.admin.post("/v1/federations/digits/keys", json={"address": address}).status_code == 422


def test_the_deadline_is_changed_by_the_operator_and_the_file_of_the_federation_still_fits(folder: Any) -> None:
    with serving(folder) as site:
        site.federation()
        answer = site.admin.put("/v1/federations/digits/deadline", json={"seconds": 77})
        assert answer.json()["settings"]["rounds"]["deadline"] == 77
        for wrong in ({"seconds": 0.5}, {"seconds": "5"}, {"seconds": True}, {}, {"seconds": 10, "more": 1}):
            assert site.admin.put("/v1/federations/digits/deadline", json=wrong).status_code == 422


def test_who_has_gone_is_forgotten_at_once(site: Site) -> None:
    viewer = site.client(site.tokens[OperatorRole.VIEWER])
    for _ in range(3):
        with events(viewer) as told:
            assert next(told)[0] == "snapshot"
    eventually(lambda: site.services.live.watchers == 0)
    assert site.services.live._watches == {}


def test_a_watcher_who_comes_while_the_last_one_goes_is_told_what_happens(site: Site) -> None:
    async def story() -> None:
        live = LiveUpdates(site.context, site.services.threads, tuple, LIVE_JSON)
        first = await live.events("digits")
        assert (await anext(first)).startswith(b"event: snapshot")
        second = asyncio.ensure_future(live.events("digits"))
        await asyncio.sleep(0)  # it waits for its turn
        await first.aclose()
        told = await second
        assert (await anext(told)).startswith(b"event: snapshot")
        async with asyncio.timeout(10):
            assert b"event: " in await anext(told)
        await told.aclose()
        assert live.watchers == 0

    asyncio.run(story())


def test_a_look_that_fails_ends_the_connections_so_that_nobody_believes_old_figures(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the database is away")

    with events(site.client(site.tokens[OperatorRole.VIEWER])) as told:
        assert next(told)[0] == "snapshot"
        monkeypatch.setattr(type(site.context.store.devices), "pulses", broken)
        assert all(kind in ("beat", "change") for kind, _ in told)  # and then it ends


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
