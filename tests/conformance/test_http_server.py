"""The server of the suite reads what clients of other languages send, and ends connections where it is told to."""

import contextlib
import http.client
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from edgefl.conformance.http_server import RawHttpServer
from edgefl.conformance.messages import Exchange, ScriptedAnswer

BODY = b"0123456789" * 1000


@dataclass
class Scripted:
    """Answers everything in the same way."""

    scripted: ScriptedAnswer = field(default_factory=lambda: ScriptedAnswer(body=BODY))
    cut: int | None = None
    seen: list[Exchange] = field(default_factory=list)

    def begin(self, exchange: Exchange) -> None:
        self.seen.append(exchange)
        exchange.read_at_most = self.cut

    def answer(self, exchange: Exchange) -> ScriptedAnswer:
        return self.scripted


@contextlib.contextmanager
def served(handler: Scripted) -> Iterator[tuple[RawHttpServer, http.client.HTTPConnection]]:
    server = RawHttpServer(handler)
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        try:
            yield server, connection
        finally:
            server.close()


def test_chunks_and_a_connection_that_stays_open() -> None:
    handler = Scripted()
    with served(handler) as (_, connection):
        for _ in range(2):
            connection.request("PUT", "/v1/tasks/a/result?x=1", body=iter([b"abc", b"defg"]), encode_chunked=True)
            assert connection.getresponse().read() == BODY
    assert [(one.body, one.name, one.is_complete, one.connection) for one in handler.seen] == [
        (b"abcdefg", "a", True, 1),
        (b"abcdefg", "a", True, 1),
    ]


def test_a_client_that_asks_whether_to_go_on_is_told() -> None:
    handler = Scripted()
    with served(handler) as (server, _), socket.create_connection(("127.0.0.1", server.port), 10) as raw:
        raw.sendall(b"PUT /x HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 100 ")
        raw.sendall(b"abc")
        assert b"200 OK" in raw.recv(1000)
    assert handler.seen[0].body == b"abc"


@pytest.mark.parametrize("is_chunked", [False, True])
def test_half_an_answer(is_chunked: bool) -> None:
    with served(Scripted(ScriptedAnswer(body=BODY, cut_after=5000, is_chunked=is_chunked))) as (_, connection):
        connection.request("GET", "/x")
        answer = connection.getresponse()
        with pytest.raises(http.client.IncompleteRead):
            answer.read()


def test_half_a_request_and_no_answer() -> None:
    handler = Scripted(cut=2000)
    with served(handler) as (_, connection):
        connection.request("PUT", "/x", body=BODY)
        with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
            connection.getresponse()
        assert 2000 <= len(handler.seen[0].body) < len(BODY)
        assert not handler.seen[0].is_complete


def test_a_server_that_is_away_for_a_moment_comes_back_at_the_same_port() -> None:
    with served(Scripted()) as (server, connection):
        server.pause(0.2)
        deadline = time.monotonic() + 5
        refused = False
        while time.monotonic() < deadline:
            try:
                connection.request("GET", "/x")
                answered = connection.getresponse().read() == BODY
            except (OSError, http.client.HTTPException):
                refused, answered = True, False
                connection.close()
            if refused and answered:
                break
            time.sleep(0.02)
        assert refused
        assert answered


def test_a_line_without_an_end_ends_the_connection() -> None:
    handler = Scripted()
    with served(handler) as (server, _), socket.create_connection(("127.0.0.1", server.port), timeout=10) as sender:
        sender.sendall(b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            sender.sendall(b"1" * 1_000_000)
            assert sender.recv(1) == b""
    assert not handler.seen[0].is_complete
