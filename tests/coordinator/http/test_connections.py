"""Nobody takes the connections of others, and a caller that does not read is disconnected."""

import contextlib
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from coordinator.http.server_settings import ServerLimits
from tests.coordinator.http.site import Site, serving
from tests.coordinator.stage import until

LIMITS = ServerLimits(
    connections=40,
    address_connections=20,
    device_connections=3,
    operator_connections=4,
    read_seconds=0.6,
    read_rate=10_000,
    requests_rate=1e9,
    requests_burst=10**9,
)
LARGE = 64 * 2**20


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("connections"), LIMITS) as running:
        running.federation()
        running.device("pi")
        running.device("other")
        yield running


@pytest.fixture
def opened(site: Site) -> Iterator[contextlib.ExitStack]:
    """Connections of a test, which are closed before the next one."""
    with contextlib.ExitStack() as stack:
        yield stack
    until(lambda: not site.server.server_state.connections)


def connect(site: Site, stack: contextlib.ExitStack, first: str = "", token: str = "token-of-pi") -> socket.socket:
    host, port = site.url.removeprefix("http://").split(":")
    connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=20))
    if first:
        lines = (f"{first} HTTP/1.1", "Host: x", f"Authorization: Bearer {token}", "Accept-Encoding: identity")
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
    return connection


def is_closed(connection: socket.socket) -> bool:
    """Return whether the other side has closed a connection, after everything that it sent."""
    try:
        while connection.recv(2**20):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


def test_a_device_that_opens_many_connections_loses_its_own_oldest(site: Site, opened: contextlib.ExitStack) -> None:
    other = connect(site, opened, "POST /v1/tasks/next?wait=20", "token-of-other")
    own = [connect(site, opened, "POST /v1/tasks/next?wait=0") for _ in range(10)]
    for connection in own:
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
    until(lambda: len(site.server.server_state.connections) == 4)
    assert all(is_closed(connection) for connection in own[:7])
    assert is_open(other)


def test_connections_without_a_token_count_for_their_address(site: Site, opened: contextlib.ExitStack) -> None:
    device = connect(site, opened, "POST /v1/tasks/next?wait=20")
    until(lambda: "device pi" in {getattr(one, "owner", "") for one in site.server.server_state.connections})
    silent = [connect(site, opened) for _ in range(30)]
    until(lambda: len(site.server.server_state.connections) == 21)
    assert all(is_closed(connection) for connection in silent[:10])
    assert is_open(device)


def test_one_connection_too_many_is_told_to_come_back(site: Site, opened: contextlib.ExitStack) -> None:
    devices = [site.device(f"device-{number}") for number in range(20)]
    for token in devices:
        for _ in range(2):
            assert connect(site, opened, "POST /v1/tasks/next?wait=0", token).recv(100).startswith(b"HTTP/1.1 200")
    answer = connect(site, opened, "GET /healthz").recv(1000)
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"retry-after" in answer


@pytest.mark.parametrize("first", [f"GET /v1/speed?bytes={LARGE}", "GET /v1/artifacts/{digest}"])
def test_a_device_that_does_not_read_is_disconnected(site: Site, opened: contextlib.ExitStack, first: str) -> None:
    digest = site.keep(bytes(LARGE))
    for _ in range(3):
        connect(site, opened, first.format(digest=digest))
    until(lambda: len(site.server.server_state.connections) == 3)
    until(lambda: not site.server.server_state.connections)


@pytest.mark.parametrize("more", ["", "Connection: close"])
def test_the_system_keeps_little_for_a_device_that_does_not_read(
    site: Site, opened: contextlib.ExitStack, more: str
) -> None:
    for _ in range(8):
        connection = connect(site, opened)
        lines = ("GET /v1/speed?bytes=1500000 HTTP/1.1", "Host: x", "Authorization: Bearer token-of-pi")
        connection.sendall("\r\n".join([*lines, *([more] if more else []), "", ""]).encode())
        assert connection.recv(1) == b"H"
    kept = LIMITS.device_connections * 1_500_000 if not more else 0
    until(lambda: unread_bytes(site) <= kept + 8 * 200_000)
    until(lambda: not more or not site.server.server_state.connections)
    assert unread_bytes(site) <= kept + 8 * 200_000


def unread_bytes(site: Site) -> int:
    """Return what the system holds for callers of a coordinator, whether or not it still has their connections."""
    port = int(site.url.rpartition(":")[2])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(int(row[4].split(":")[0], 16) for row in rows if int(row[1].split(":")[1], 16) == port)


def test_a_device_that_reads_slowly_but_steadily_gets_everything(site: Site, opened: contextlib.ExitStack) -> None:
    connection = connect(site, opened, "GET /v1/speed?bytes=8000000")
    read = 0
    while read < 8_000_000:
        piece = connection.recv(200_000)
        assert piece
        read += len(piece)
        time.sleep(0.05)


def test_a_viewer_that_does_not_read_live_events_is_disconnected(
    site: Site, opened: contextlib.ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    async def events() -> AsyncIterator[bytes]:
        try:
            for _ in range(1000):
                yield bytes(2**20)
        finally:
            ended.set()

    async def watch(name: str) -> AsyncIterator[bytes]:
        return events()

    monkeypatch.setattr(site.services.live, "events", watch)
    connect(site, opened, "GET /v1/federations/digits/live", site.admin_token)
    assert ended.wait(10)


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return bool(connection.recv(1))
    except BlockingIOError:
        return True
