"""JSON that is made to be expensive: refused by its size or form, and never parsed on the event loop if it is large."""

import gzip
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from coordinator.http.server_settings import ServerLimits
from coordinator.thread_pools import ThreadPools
from edgefl.values import dumps
from tests.coordinator.http.site import Site, serving
from tests.values.samples import PROFILE

OFTEN = ServerLimits(requests_rate=1e9, requests_burst=10**9)
KIB = 1024
PROFILE_PATH, REFUSAL_PATH = "/v1/devices/me/profile", "/v1/tasks/digits-0-pi/refusal"

HOSTILE = {
    "lists": b"[" + b",".join([b"[]"] * 20_000) + b"]",
    "objects": b"[" + b",".join([b"{}"] * 20_000) + b"]",
    "nested lists": b"[" * 30_000 + b"]" * 30_000,
    "nested lists without an end": b"[" * 60_000,
    "ends without a list": b"]" * 60_000,
    "nested objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "a huge integer": b"1" * 60_000,
    "a huge exponent": b'{"schema": 1e' + b"9" * 50_000 + b"}",
    "integers": b"[" + b",".join([b"1"] * 30_000) + b"]",
    "keys": b"{" + b",".join(b'"k%d":1' % number for number in range(5000)) + b"}",
    "one key again and again": b"{" + b",".join([b'"schema":1'] * 5000) + b"}",
    "a text without an end": b'"' + b"\\u0041" * 10_000,
    "unpaired surrogates": b'{"schema": "' + b"\\ud800" * 10_000 + b'"}',
    "not a number": b'{"schema": NaN, "x": Infinity}',
    "not UTF-8": b'{"schema": "' + b"\xff" * 60_000 + b'"}',
    "zeros": bytes(60_000),
    "spaces": b" " * 60_000,
    "nothing": b"",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("json"), OFTEN) as running:
        running.federation()
        running.device("pi")
        running.open_round("pi")
        yield running


@pytest.fixture(scope="module")
def client(site: Site) -> httpx.Client:
    return site.client("token-of-pi")


def sent(client: httpx.Client, method: str, path: str, body: bytes) -> int:
    """Send a body as it is and compressed; return the status, which must be the same."""
    statuses = {
        client.request(method, path, content=body).status_code,
        client.request(method, path, content=gzip.compress(body), headers={"Content-Encoding": "gzip"}).status_code,
    }
    assert len(statuses) == 1
    return statuses.pop()


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_json_is_refused_by_every_route(site: Site, client: httpx.Client, kind: str) -> None:
    body = HOSTILE[kind]
    assert sent(client, "PUT", PROFILE_PATH, body) in (400, 422)
    assert sent(client, "PUT", REFUSAL_PATH, body) in ((413,) if len(body) > 4 * KIB else (400, 422))
    assert sent(site.admin, "POST", "/v1/federations", body) in (400, 422)
    assert sent(site.admin, "PUT", "/v1/federations/digits/deadline", body) in (400, 422)
    if body:
        assert sent(site.admin, "POST", "/v1/federations/digits/keys", body) in (400, 422)


@pytest.mark.parametrize(
    ("method", "path", "most"),
    [
        ("PUT", REFUSAL_PATH, 4 * KIB),
        ("PUT", PROFILE_PATH, 64 * KIB),
        ("POST", "/v1/devices", 64 * KIB),
        ("POST", "/v1/federations/digits/keys", 64 * KIB),
        ("POST", "/v1/federations/digits/pause", 64 * KIB),
        ("PUT", "/v1/federations/digits/deadline", 64 * KIB),
        ("POST", "/v1/federations", 256 * KIB),
    ],
)
def test_every_route_has_its_own_limit(site: Site, client: httpx.Client, method: str, path: str, most: int) -> None:
    caller = site.admin if "federations" in path else client
    if path == "/v1/devices":
        caller = site.client(_key(site))
    assert sent(caller, method, path, b"[" + b" " * (most - 2) + b"]") in (400, 422)
    assert sent(caller, method, path, b"[" + b" " * (most - 1) + b"]") == 413


def _key(site: Site) -> str:
    key = site.admin.post("/v1/federations/digits/keys", json={}).json()["key"]
    assert isinstance(key, str)
    return key


def test_large_json_is_parsed_by_a_thread_of_its_own(
    site: Site, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    passed_on = ThreadPools.parse

    async def parse(self: ThreadPools, call: Callable[..., Any], *args: Any) -> Any:
        def noted(*args: Any) -> Any:
            parsed.append(threading.current_thread().name)
            return call(*args)

        return await passed_on(self, noted, *args)

    monkeypatch.setattr(ThreadPools, "parse", parse)
    large = dumps(PROFILE).encode() + b" " * 5000
    assert client.put(PROFILE_PATH, content=large).status_code == 204
    assert client.put(PROFILE_PATH, content=dumps(PROFILE)).status_code == 204
    (name,) = parsed
    assert name.startswith("parse")


def test_many_headers_and_many_parameters_are_refused(site: Site, client: httpx.Client) -> None:
    assert client.get("/healthz", headers=[("X", "y")] * 200).status_code == 431
    assert client.get("/healthz?" + "a&" * 40).status_code == 414
    assert client.get("/healthz?" + "a&" * 20).status_code == 200
