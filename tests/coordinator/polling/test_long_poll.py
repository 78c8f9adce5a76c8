"""Long polls: woken at once, answered at the end, let go when the coordinator stops."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from coordinator.federations.lifecycle import Verb, move
from coordinator.http.server_settings import ServerLimits
from coordinator.storage.records import Task
from tests.coordinator.http.site import Site, serving
from tests.coordinator.stage import until


def test_a_poll_that_waits_is_answered_when_a_task_comes(site: Site) -> None:
    site.federation("wakes")
    tokens = [site.device(name, "wakes") for name in ("early", "other")]
    with ThreadPoolExecutor() as pool:
        polls = [pool.submit(site.client(token).post, "/v1/tasks/next?wait=30") for token in tokens]
        until(lambda: site.services.long_polls.open == 2)
        site.open_round("early", federation="wakes")
        assert polls[0].result(10).json()["plan"]["device_id"] == "early"
        assert not polls[1].done()
        site.services.long_polls.wake(["other"])
        assert polls[1].result(10).json()["plan"] is None


def test_a_task_of_another_worker_is_found_too(site: Site) -> None:
    site.federation("workers")
    token = site.device("patient", "workers")
    tell, site.context.wake = site.context.wake, lambda devices: None
    try:
        with ThreadPoolExecutor() as pool:
            poll = pool.submit(site.client(token).post, "/v1/tasks/next?wait=30")
            until(lambda: site.services.long_polls.open == 1)
            site.open_round("patient", federation="workers")
            assert poll.result(10).json()["plan"]["device_id"] == "patient"
    finally:
        site.context.wake = tell


def test_a_device_with_nothing_to_do_costs_the_database_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.federation("idle")
    client = site.client(site.device("idler", "idle"))
    until(lambda: site.services.long_polls._busy is not None)
    asked: list[str] = []
    open_task = site.context.store.tasks.oldest_open

    def noting(device: str) -> Task | None:
        asked.append(device)
        return open_task(device)

    monkeypatch.setattr(site.context.store.tasks, "oldest_open", noting)
    assert client.post("/v1/tasks/next").json()["plan"] is None
    assert asked == []
    (task_id,) = site.open_round("idler", federation="idle")
    until(lambda: client.post("/v1/tasks/next").json()["plan"] is not None)
    assert "idler" in asked
    client.put(f"/v1/tasks/{task_id}/result", content=site.update(task_id))
    assert client.post("/v1/tasks/next").json()["plan"] is None


def test_who_is_told_while_the_database_is_asked_is_not_forgotten(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.federation("meanwhile")
    client = site.client(site.device("unlucky", "meanwhile"))
    asking, answering = threading.Event(), threading.Event()
    busy_devices = site.context.store.tasks.busy_devices

    def slowly() -> dict[str, str]:
        found = busy_devices()
        asking.set()
        answering.wait(10)
        return found

    monkeypatch.setattr(site.context.store.tasks, "busy_devices", slowly)
    assert asking.wait(10)
    site.open_round("unlucky", federation="meanwhile")
    until(lambda: "unlucky" in site.services.long_polls._woken)
    answering.set()
    until(lambda: client.post("/v1/tasks/next").json()["plan"] is not None)


def test_a_poll_that_waited_in_vain_is_told_when_to_come_again(site: Site) -> None:
    token = site.device("vain")
    answer = site.client(token).post("/v1/tasks/next?wait=0.1").json()
    assert answer["plan"] is None
    assert answer["finished"] is False
    assert answer["retry_seconds"] > 0


def test_the_end_of_a_federation_wakes_its_devices(site: Site) -> None:
    site.federation("ends")
    token = site.device("last", "ends")
    with ThreadPoolExecutor() as pool:
        poll = pool.submit(site.client(token).post, "/v1/tasks/next?wait=30")
        until(lambda: site.services.long_polls.open == 1)
        move(site.context, "ends", Verb.ABORT)
        assert poll.result(10).json()["finished"] is True


def test_a_device_that_polls_again_lets_go_of_its_older_poll(site: Site) -> None:
    token = site.device("twice")
    with ThreadPoolExecutor() as pool:
        first = pool.submit(site.client(token).post, "/v1/tasks/next?wait=30")
        until(lambda: site.services.long_polls.open == 1)
        second = pool.submit(site.client(token).post, "/v1/tasks/next?wait=30")
        assert first.result(10).json()["plan"] is None
        assert not second.done()
        site.services.long_polls.wake(["twice"])
        second.result(10)


def test_more_polls_than_allowed_are_told_to_come_again(folder: Path) -> None:
    with serving(folder, ServerLimits(open_polls=1)) as site:
        site.federation()
        one, two = site.client(site.device("one")), site.client(site.device("two"))
        with ThreadPoolExecutor() as pool:
            waits = pool.submit(one.post, "/v1/tasks/next?wait=30")
            until(lambda: site.services.long_polls.open == 1)
            answer = two.post("/v1/tasks/next?wait=30")
            assert answer.status_code == 503
            assert int(answer.headers["Retry-After"]) > 0
            site.services.long_polls.wake(["one"])
            waits.result(10)


@pytest.mark.parametrize("wait", ["-1", "nan", "inf", "soon", "1e9"])
def test_a_wait_that_is_none_is_refused(site: Site, wait: str) -> None:
    answer = site.client(site.device(f"odd-{wait}")).post(f"/v1/tasks/next?wait={wait}")
    assert answer.status_code == 422


def test_a_stop_answers_every_open_poll_and_keeps_who_was_heard_of(folder: Path) -> None:
    number = 100
    with serving(folder) as site:
        site.federation()
        tokens = [site.device(f"device-{index:03}") for index in range(number)]
        enrolled = site.context.store.devices.get("device-007")
        answers: list[httpx.Response] = []

        async def poll_all() -> None:
            limits = httpx.Limits(max_connections=number)
            async with httpx.AsyncClient(base_url=site.url, timeout=60, limits=limits) as client:
                asked = (
                    client.post("/v1/tasks/next?wait=30", headers={"Authorization": f"Bearer {token}"})
                    for token in tokens
                )
                answers.extend(await asyncio.gather(*asked))

        thread = threading.Thread(target=asyncio.run, args=(poll_all(),))
        thread.start()
        until(lambda: site.services.long_polls.open == number)
        began = time.monotonic()
        site.stop()
        thread.join()
        assert time.monotonic() - began < 15  # not the thirty seconds that they would have waited
        assert [answer.status_code for answer in answers] == [200] * number
        assert all(answer.json()["plan"] is None for answer in answers)
        heard = site.context.store.devices.get("device-007")
        assert heard is not None
        assert enrolled is not None
        assert heard.seen_at > enrolled.seen_at
