"""What is too large, too slow or too much is refused, before it costs anything."""

import gzip
import socket
import threading
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from coordinator.http.server_settings import ServerLimits
from edgefl.values import Outcome, dumps
from edgefl.wire.byte_shuffle import MOST_BYTES, pack
from tests.coordinator.http.site import Site, serving
from tests.values.samples import PROFILE

LIMITS = ServerLimits(
    document_bytes=10_000,
    upload_bytes=400_000,
    header_bytes=4_000,
    header_seconds=0.3,
    body_seconds=0.3,
    body_rate=10_000,
    kept_bytes=20_000,
    speed_bytes=300_000,
)


PROFILE_PATH = "/v1/devices/me/profile"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("limits"), LIMITS) as running:
        running.federation()
        running.device("sender")
        running.open_round("sender")
        yield running


@pytest.fixture(scope="module")
def client(site: Site) -> httpx.Client:
    return site.client("token-of-sender")


def raw(site: Site, *parts: bytes, wait: float = 0.0) -> bytes:
    """Send bytes as they are, and return the answer until the connection is closed."""
    host, port = site.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        answer = b""
        try:
            for part in parts:
                connection.sendall(part)
                threading.Event().wait(wait)
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionError:
            pass
    return answer


def head(length: int | None, *more: str, path: str = PROFILE_PATH, method: str = "PUT") -> bytes:
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    lines = [f"{method} {path} HTTP/1.1", "Host: x", "Authorization: Bearer token-of-sender", size, *more, "", ""]
    return "\r\n".join(lines).encode()


def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(site: Site) -> None:
    answer = raw(site, head(10_001))
    assert answer.startswith(b"HTTP/1.1 413")
    assert b'"fix"' in answer
    assert b"connection: close" in answer.lower()


def test_who_is_refused_before_the_body_was_read_cannot_hold_the_connection_with_it(site: Site) -> None:
    answer = raw(site, head(10_000).replace(b"token-of-sender", b"unknown"))
    assert answer.startswith(b"HTTP/1.1 401")
    assert b"connection: close" in answer.lower()


def test_a_body_that_becomes_too_large_is_refused_on_its_way(client: httpx.Client) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(20):
            yield b"x" * 1000

    assert client.put(PROFILE_PATH, content=pieces()).status_code == 413


def test_a_request_that_takes_no_body_may_have_none_that_is_read(client: httpx.Client) -> None:
    assert client.post("/v1/tasks/next", content=b"x" * 1000).status_code == 200


def test_a_packed_document_is_unpacked(client: httpx.Client) -> None:
    body = gzip.compress(dumps(PROFILE).encode(), mtime=0)
    assert client.put(PROFILE_PATH, content=body, headers={"Content-Encoding": "gzip"}).status_code == 204


def test_a_packed_update_is_unpacked(site: Site) -> None:
    site.federation("packed")
    token = site.device("packer", "packed")
    (task_id,) = site.open_round("packer", federation="packed")
    body = site.update(task_id)
    assert len(body) > LIMITS.kept_bytes
    packed = gzip.compress(body, mtime=0)
    path, headers = f"/v1/tasks/{task_id}/result", {"Content-Encoding": "gzip"}
    answer = site.client(token).put(path, content=packed, headers=headers)
    assert answer.json()["outcome"] == Outcome.ACCEPTED
    task = site.context.store.tasks.get(task_id)
    assert task is not None
    assert site.context.blobs.get(task.update or "") == body


@pytest.mark.parametrize("kept", [LIMITS.kept_bytes, 2**20])
def test_an_update_packed_by_planes_is_unpacked_in_memory_and_in_a_file(tmp_path: Path, kept: int) -> None:
    with serving(tmp_path, replace(LIMITS, kept_bytes=kept)) as site:
        site.federation()
        token = site.device("packer")
        (task_id,) = site.open_round("packer")
        body = site.update(task_id)
        assert LIMITS.kept_bytes < len(body) < 2**20
        headers = {"Content-Encoding": "edgefl-planes, gzip"}
        client, path = site.client(token), f"/v1/tasks/{task_id}/result"
        assert client.put(path, content=pack(body), headers=headers).json()["outcome"] == Outcome.ACCEPTED
        task = site.context.store.tasks.get(task_id)
        assert task is not None
        assert site.context.blobs.get(task.update or "") == body
        assert client.put(path, content=body).json()["outcome"] == Outcome.ALREADY


def test_codings_may_stand_in_headers_of_their_own(site: Site) -> None:
    body = pack(b"no body at all")
    lines = ("Content-Encoding: Edgefl-Planes", "Content-Encoding: x-gzip", "Connection: close")
    answer = raw(site, head(len(body), *lines, path="/v1/tasks/digits-0-sender/result"), body)
    assert answer.startswith(b"HTTP/1.1 422")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"this is no gzip", 400),
        (pack(bytes(30_000))[:-5], 400),
        (pack(bytes(30_000)) + b"more", 400),
        (pack(b"no body at all"), 422),
        (pack(bytes(30_000)), 422),
        (gzip.compress(bytes(500_000)), 413),
    ],
)
def test_what_is_not_packed_by_planes_soundly_is_refused(client: httpx.Client, body: bytes, status: int) -> None:
    headers = {"Content-Encoding": "edgefl-planes, gzip"}
    answer = client.put("/v1/tasks/digits-0-sender/result", content=body, headers=headers)
    assert answer.status_code == status
    assert answer.json()["error"]["fix"]


def test_planes_unpack_to_no_more_than_is_said_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(tmp_path) as site:
        monkeypatch.setattr(site.services.upload_sizes, "known", lambda task: 2**30)  # as if the model were large
        site.federation()
        client = site.client(site.device("packer"))
        (task_id,) = site.open_round("packer")
        for size, status in ((MOST_BYTES, 422), (MOST_BYTES + 1, 413)):
            headers = {"Content-Encoding": "edgefl-planes, gzip"}
            answer = client.put(f"/v1/tasks/{task_id}/result", content=gzip.compress(bytes(size)), headers=headers)
            assert answer.status_code == status


def test_a_small_body_that_unpacks_to_a_large_one_is_refused(client: httpx.Client) -> None:
    bomb = gzip.compress(bytes(50_000_000), mtime=0)
    assert len(bomb) < 60_000
    for path in (PROFILE_PATH, "/v1/tasks/digits-0-sender/result"):
        answer = client.put(path, content=bomb, headers={"Content-Encoding": "gzip"})
        assert answer.status_code == 413


@pytest.mark.parametrize(
    "body",
    [
        b"this is no gzip",
        gzip.compress(b"{}" * 100, mtime=0)[:-5],
        gzip.compress(b"{}", mtime=0) + b"and more",
        gzip.compress(b"{}", mtime=0) + gzip.compress(b"{}", mtime=0),
        zlib.compress(b"{}"),
        b"",
    ],
)
def test_what_is_no_gzip_is_refused(client: httpx.Client, body: bytes) -> None:
    answer = client.put(PROFILE_PATH, content=body, headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 400
    assert answer.json()["error"]["fix"]


def test_a_packing_that_is_not_known_is_refused(client: httpx.Client) -> None:
    result = "/v1/tasks/digits-0-sender/result"
    for coding in ("br", "gzip, gzip", "gzip, edgefl-planes", "edgefl-planes"):
        for path, taken in ((PROFILE_PATH, "gzip, identity"), (result, "edgefl-planes, gzip, identity")):
            answer = client.put(path, content=b"{}", headers={"Content-Encoding": coding})
            assert answer.status_code == 415
            assert answer.headers["Accept-Encoding"] == taken


def test_only_updates_are_packed_by_planes(client: httpx.Client) -> None:
    body = pack(dumps(PROFILE).encode())
    answer = client.put(PROFILE_PATH, content=body, headers={"Content-Encoding": "edgefl-planes, gzip"})
    assert answer.status_code == 415


def test_headers_that_are_too_large_are_refused(client: httpx.Client) -> None:
    answer = client.post("/v1/tasks/next", headers={f"X-{number}": "x" * 500 for number in range(10)})
    assert answer.status_code == 431
    assert answer.json()["error"]["fix"]
    assert client.get("/" + "x" * 5000).status_code == 431


def test_headers_without_an_end_do_not_fill_the_memory(site: Site) -> None:
    answer = raw(site, b"GET / HTTP/1.1\r\n", *[b"X-More: " + b"x" * 1000 + b"\r\n"] * 200)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431")


def test_headers_that_do_not_come_are_not_waited_for(site: Site) -> None:
    for parts in ((b"",), (b"GET /healthz HTTP/1.1\r\nHost:",)):
        answer = raw(site, *parts)
        assert answer.startswith(b"HTTP/1.1 408")
        assert b'"fix"' in answer


def test_a_body_that_does_not_come_is_not_waited_for(site: Site) -> None:
    assert raw(site, head(1000), b"{").startswith(b"HTTP/1.1 408")


def test_a_body_that_drips_is_not_waited_for(site: Site) -> None:
    answer = raw(site, head(1000), *[b"{"] * 10, wait=0.1)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 408")


def test_a_body_that_breaks_off_is_nobodys_error(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    host, port = site.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head(1000) + b"{")
    assert site.client().get("/healthz").status_code == 200
    assert not [record for record in caplog.records if record.exc_info]


def test_speed_is_measured_with_no_more_bytes_than_allowed(client: httpx.Client) -> None:
    assert len(client.get("/v1/speed?bytes=300000").content) == 300_000
    assert client.get("/v1/speed?bytes=0").content == b""
    assert client.get("/v1/speed?bytes=300001").status_code == 422
    assert client.post("/v1/speed", content=bytes(300_000)).status_code == 204
    assert client.post("/v1/speed", content=bytes(300_001)).status_code == 413


def test_a_device_that_was_refused_for_its_body_can_go_on(folder: Path, client: httpx.Client) -> None:
    assert client.put(PROFILE_PATH, content=b"x" * 20_000).status_code == 413
    assert client.put(PROFILE_PATH, content=dumps(PROFILE)).status_code == 204
