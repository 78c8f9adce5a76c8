"""What is read of an update: nothing without a task, no more than its plan can need, and nobody holds up the others."""

import contextlib
import gzip
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from coordinator.http.server_settings import ServerLimits
from edgefl.values import Outcome
from tests.coordinator.http.site import Site, serving
from tests.coordinator.http.test_request_limits import head, raw
from tests.coordinator.stage import until


def endless(piece: bytes, taken: list[int]) -> Iterator[bytes]:
    """Yield pieces without an end, and note how many were taken."""
    for number in range(10_000):
        taken.append(number)
        yield piece


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A coordinator with the limits that it has by default."""
    with serving(tmp_path_factory.mktemp("ordinary")) as running:
        running.federation()
        for name in ("sender", "other"):
            running.device(name)
        running.open_round("sender", "other")
        yield running


def test_no_more_is_read_of_an_update_than_its_plan_can_need(ordinary: Site) -> None:
    task = "digits-0-sender"
    body, taken = ordinary.update(task), list[int]()
    client = ordinary.client("token-of-sender")
    assert client.put(f"/v1/tasks/{task}/result", content=bytes(10 * len(body))).status_code == 413
    try:
        answer = client.put(f"/v1/tasks/{task}/result", content=endless(bytes(8192), taken))
        assert answer.status_code == 413
    except httpx.WriteError:
        pass  # it was still sending when the connection was closed
    assert len(taken) < 1000
    assert client.put(f"/v1/tasks/{task}/result", content=body).json()["outcome"] == Outcome.ACCEPTED


def test_a_packed_update_never_becomes_larger_than_its_plan_can_need(
    ordinary: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> Path:
        raise AssertionError("it was written to the disk")

    monkeypatch.setattr(ordinary.context.blobs, "spool", nothing)
    client = ordinary.client("token-of-other", **{"Content-Encoding": "gzip"})
    answer = client.put("/v1/tasks/digits-0-other/result", content=gzip.compress(bytes(50_000_000)))
    assert answer.status_code == 413
    assert ordinary.services.memory.used == 0


def test_a_body_for_no_task_is_not_asked_for(ordinary: Site) -> None:
    for task in ("digits-0-sender", "none"):  # another device's, nobody's
        answer = raw(
            ordinary,
            head(1000, "Expect: 100-continue", path=f"/v1/tasks/{task}/result").replace(b"sender\r", b"other\r"),
        )
        assert answer.startswith(b"HTTP/1.1 404")


def test_senders_that_hardly_send_are_in_nobodys_way(tmp_path: Path) -> None:
    limits = ServerLimits(memory_bytes=4 * 64 * 1024, header_seconds=60, body_seconds=60)
    with serving(tmp_path, limits) as site, contextlib.ExitStack() as stack:
        site.federation()
        names = [f"slow-{number}" for number in range(4)]
        tokens = {name: site.device(name) for name in [*names, "honest"]}
        site.open_round(*tokens)
        host, port = site.url.removeprefix("http://").split(":")
        for name in [name for name in names for _ in range(2)]:
            connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=20))
            first = head(90_000, path=f"/v1/tasks/digits-0-{name}/result").replace(
                b"token-of-sender", tokens[name].encode()
            )
            connection.sendall(first + bytes(100))
        until(lambda: site.services.memory.used == limits.memory_bytes)
        answer = site.client(tokens["honest"]).put(
            "/v1/tasks/digits-0-honest/result", content=site.update("digits-0-honest")
        )
        assert answer.json()["outcome"] == Outcome.ACCEPTED


def test_an_update_that_finds_no_more_memory_goes_to_a_file(tmp_path: Path) -> None:
    with serving(tmp_path, ServerLimits(memory_bytes=10_000)) as site:
        site.federation()
        token = site.device("pi")
        (task,) = site.open_round("pi")
        body = site.update(task)
        assert len(body) > 20_000
        answer = site.client(token).put(f"/v1/tasks/{task}/result", content=body)
        assert answer.json()["outcome"] == Outcome.ACCEPTED
        known = site.context.store.tasks.get(task)
        assert known is not None
        assert site.context.blobs.get(known.update or "") == body
        assert not list((tmp_path / "blobs" / "spool").iterdir())
