"""A refused request leaves nothing behind: no error, no frame, no body waits for the garbage collector."""

import gc
import gzip
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from coordinator.http.server_settings import ServerLimits
from coordinator.rounds.upload_checks import IncomingUpdate
from edgefl.errors import EdgeFLError
from tests.coordinator.http.site import Site, serving
from tests.coordinator.stage import until

HELD = (EdgeFLError, HTTPException, RequestValidationError, IncomingUpdate, Request)
OFTEN = ServerLimits(requests_rate=1e9, requests_burst=10**9, failures_rate=1e9, failures_burst=10**9)
RESULT, PROFILE = "/v1/tasks/digits-0-pi/result", "/v1/devices/me/profile"
DEEP = gzip.compress(b"[" * 50_000, mtime=0)
Send = Callable[[Site, httpx.Client], Any]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("refused"), OFTEN) as running:
        running.federation()
        running.device("pi")
        running.open_round("pi")
        yield running


def aborted(site: Site, sent: bytes) -> None:
    host, port = site.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(sent)


def head(first: str, length: int) -> bytes:
    lines = (f"{first} HTTP/1.1", "Host: x", "Authorization: Bearer token-of-pi", f"Content-Length: {length}")
    return "\r\n".join([*lines, "", ""]).encode()


def packed(body: bytes, coding: str = "gzip") -> dict[str, Any]:
    return {"content": body, "headers": {"Content-Encoding": coding}}


KINDS: dict[str, Send] = {
    "an update that is none": lambda site, pi: pi.put(RESULT, content=os.urandom(1000)),
    "an update that is cut short": lambda site, pi: pi.put(RESULT, content=site.update("digits-0-pi")[:-1]),
    "an update of another task": lambda site, pi: pi.put("/v1/tasks/none/result", content=bytes(20_000)),
    "an update that is not gzip": lambda site, pi: pi.put(RESULT, **packed(b"not gzip")),
    "an update that unpacks to a large one": lambda site, pi: pi.put(RESULT, **packed(gzip.compress(bytes(10**8)))),
    "an update in an unknown coding": lambda site, pi: pi.put(RESULT, **packed(b"x", "br")),
    "an update that breaks off": lambda site, pi: aborted(site, head(f"PUT {RESULT}", 5000) + b"x"),
    "a profile that is not JSON": lambda site, pi: pi.put(PROFILE, content=b"[1]x"),
    "a profile that is none": lambda site, pi: pi.put(PROFILE, content=b"[1]"),
    "a profile that is too deep": lambda site, pi: pi.put(PROFILE, **packed(DEEP)),
    "a profile that is too large": lambda site, pi: pi.put(PROFILE, content=bytes(2_000_000)),
    "an unknown token": lambda site, pi: site.client("unknown" * 5).put(PROFILE, content=b"[1]"),
    "an unknown path": lambda site, pi: pi.get("/nowhere"),
    "another method": lambda site, pi: pi.delete("/healthz"),
    "an unknown artifact": lambda site, pi: pi.get("/v1/artifacts/sha256:" + "0" * 64),
    "a wait that is no number": lambda site, pi: pi.post("/v1/tasks/next?wait=x"),
    "a refusal that is none": lambda site, pi: pi.put("/v1/tasks/digits-0-pi/refusal", content=b"{}"),
    "headers that are too large": lambda site, pi: pi.get("/healthz", headers={"X": "y" * 15_000, "Z": "y" * 3000}),
    "what is not HTTP": lambda site, pi: aborted(site, b"\x16\x03\x01 not HTTP\r\n\r\n"),
    "headers that break off": lambda site, pi: aborted(site, b"GET /healthz HTTP/1.1\r\nHo"),
    "a poll that breaks off": lambda site, pi: aborted(site, head("POST /v1/tasks/next?wait=0.1", 0)),
    "an unknown federation": lambda site, pi: site.admin.get("/v1/federations/none"),
    "a federation that is none": lambda site, pi: site.admin.post("/v1/federations", content=b'{"settings": {}}'),
    "a bundle that is none": lambda site, pi: site.admin.post("/v1/bundles", content=b"no zip file"),
    "a move that is not possible": lambda site, pi: site.admin.post("/v1/federations/none/start"),
}
"""Requests that are refused, in every layer."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_request_leaves_nothing_for_the_garbage_collector(site: Site, kind: str) -> None:
    pi, send = site.client("token-of-pi"), KINDS[kind]
    send(site, pi)  # whatever it loads only once
    gc.collect()
    gc.disable()
    try:
        before = held()
        for _ in range(3):
            send(site, pi)
        until(lambda: held() <= before)
    finally:
        gc.enable()


def held() -> int:
    """Return how many objects of requests there are."""
    return sum(issubclass(type(one), HELD) for one in gc.get_objects())
