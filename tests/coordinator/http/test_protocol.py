"""What goes over a connection, byte by byte: when a body is read, and how an answer is written."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from coordinator.http.protocol import LimitedProtocol
from edgefl.values import Outcome, dumps
from tests.coordinator.http.site import Site
from tests.coordinator.stage import until
from tests.values.samples import PROFILE


@contextmanager
def connected(site: Site) -> Iterator[socket.socket]:
    host, port = site.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        yield connection


def head(first: str, token: str, length: int = 0, *more: str) -> bytes:
    lines = [f"{first} HTTP/1.1", "Host: x", f"Authorization: Bearer {token}", f"Content-Length: {length}", *more]
    return "\r\n".join([*lines, "", ""]).encode()


def received(connection: socket.socket, ending: bytes) -> bytes:
    answer = b""
    while not answer.endswith(ending):
        piece = connection.recv(65536)
        assert piece, answer
        answer += piece
    return answer


@contextmanager
def no_room(site: Site) -> Iterator[None]:
    """Take all the memory that bodies may have."""
    loop = site.server.servers[0].get_loop()
    free, taken = asyncio.Event(), threading.Event()

    async def take() -> None:
        async with site.services.memory.reserved(site.services.limits.memory_bytes):
            taken.set()
            await free.wait()

    holding = asyncio.run_coroutine_threadsafe(take(), loop)
    assert taken.wait(10)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(free.set)
        holding.result(10)


def test_an_update_that_waits_for_room_waits_in_the_network(site: Site) -> None:
    site.federation("room")
    token = site.device("patient", "room")
    (task_id,) = site.open_round("patient", federation="room")
    body = site.update(task_id)
    assert len(body) > 20_000
    with connected(site) as connection:
        with no_room(site):
            connection.sendall(head(f"PUT /v1/tasks/{task_id}/result", token, len(body)) + body)
            until(lambda: bool(site.services.memory._queue))
            (waiting,) = [one for one in site.server.server_state.connections if paused(one)]
            assert isinstance(waiting, LimitedProtocol)
            assert len(waiting.cycle.body) <= 8192
        assert Outcome.ACCEPTED.encode() in received(connection, b"}")
    task = site.context.store.tasks.get(task_id)
    assert task is not None
    assert site.context.blobs.get(task.update or "") == body


def paused(connection: object) -> bool:
    return isinstance(connection, LimitedProtocol) and connection.flow.read_paused


def test_requests_in_one_piece_are_answered_one_after_the_other(site: Site) -> None:
    token = site.device("hasty")
    profile = dumps(PROFILE).encode()
    put = head("PUT /v1/devices/me/profile", token, len(profile)) + profile
    with connected(site) as connection:
        connection.sendall(head("POST /v1/tasks/next", token) + put + head("POST /v1/tasks/next?wait=0", token))
        answer = received(connection, b'"finished":false}')
        while answer.count(b"HTTP/1.1 200") < 2:
            answer += received(connection, b'"finished":false}')
    assert answer.count(b"HTTP/1.1 204") == 1
    assert answer.index(b"HTTP/1.1 200") < answer.index(b"HTTP/1.1 204") < answer.rindex(b"HTTP/1.1 200")


def test_who_asks_whether_a_body_may_come_is_told_before_it_comes(site: Site) -> None:
    token = site.device("polite")
    profile = dumps(PROFILE).encode()
    with connected(site) as connection:
        connection.sendall(head("PUT /v1/devices/me/profile", token, len(profile), "Expect: 100-continue"))
        assert received(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 100 ")
        connection.sendall(profile)
        assert received(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 204 ")


@pytest.mark.parametrize("path", ["/healthz", "/nowhere"])
def test_an_answer_that_is_a_head_alone_is_sent(site: Site, path: str) -> None:
    with connected(site) as connection:
        connection.sendall(head(f"HEAD {path}", "none"))
        assert received(connection, b"\r\n\r\n").startswith(b"HTTP/1.1 40")
