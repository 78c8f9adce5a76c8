"""Requests whose end two servers could see at different places, and other ways to say what HTTP/1.1 does not.

The second request in each attack must never be answered as one of its own unless the first one plainly ends before it.
"""

import socket

import pytest

from tests.coordinator.http.site import Site

SECOND = b"GET /v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = b"2\r\n{}\r\n0\r\n\r\n"


def post(*headers: str, version: str = "1.1") -> bytes:
    lines = [f"POST /v1/federations/digits/pause HTTP/{version}", "Host: x", "Authorization: Bearer ADMIN", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


CHUNKED = post("Transfer-Encoding: chunked")
REFUSED = {
    "length and chunks": post("Content-Length: 6", "Transfer-Encoding: chunked") + b"0\r\n\r\n" + SECOND,
    "chunks and length": post("Transfer-Encoding: chunked", "Content-Length: 6") + b"0\r\n\r\n" + SECOND,
    "two lengths": post("Content-Length: 2", "Content-Length: 40") + b"{}" + SECOND,
    "the same length twice": post("Content-Length: 2", "Content-Length: 2") + b"{}" + SECOND,
    "a list of lengths": post("Content-Length: 2, 2") + b"{}" + SECOND,
    "a signed length": post("Content-Length: +2") + b"{}" + SECOND,
    "a negative length": post("Content-Length: -1") + SECOND,
    "a hexadecimal length": post("Content-Length: 0x2") + b"{}" + SECOND,
    "a length beyond 64 bits": post("Content-Length: 18446744073709551618") + b"{}" + SECOND,
    "no length": post("Content-Length: ") + SECOND,
    "a space before a colon": post("Content-Length : 2") + b"{}" + SECOND,
    "an unknown transfer coding": post("Transfer-Encoding: xchunked") + BODY + SECOND,
    "no transfer coding": post("Transfer-Encoding: identity") + BODY + SECOND,
    "a coding below chunks": post("Transfer-Encoding: gzip, chunked") + BODY + SECOND,
    "a coding above chunks": post("Transfer-Encoding: chunked, identity") + BODY + SECOND,
    "two transfer codings": post("Transfer-Encoding: chunked", "Transfer-Encoding: identity") + BODY + SECOND,
    "a coding after a control": post("Transfer-Encoding: \x0bchunked") + BODY + SECOND,
    "chunks in HTTP/1.0": post("Transfer-Encoding: chunked", version="1.0") + BODY + SECOND,
    "lines without CR": b"GET /healthz HTTP/1.1\nHost: x\n\n" + SECOND,
    "one line without CR": b"GET /healthz HTTP/1.1\r\nHost: x\nX: y\r\n\r\n" + SECOND,
    "one line without LF": b"GET /healthz HTTP/1.1\r\nHost: x\rX: y\r\n\r\n" + SECOND,
    "a folded header": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n" + SECOND,
    "a folded coding": post("Transfer-Encoding:\r\n chunked") + BODY + SECOND,
    "a chunk beyond 64 bits": CHUNKED + b"10000000000000002\r\n{}\r\n0\r\n\r\n" + SECOND,
    "a negative chunk": CHUNKED + b"-2\r\n{}\r\n0\r\n\r\n" + SECOND,
    "a chunk with a prefix": CHUNKED + b"0x2\r\n{}\r\n0\r\n\r\n" + SECOND,
    "a chunk without CR": CHUNKED + b"2\n{}\n0\n\n" + SECOND,
    "a chunk with another end": CHUNKED + b"2\r\n{}XX0\r\n\r\n" + SECOND,
    "a chunk with a space": CHUNKED + b"2 \r\n{}\r\n0\r\n\r\n" + SECOND,
    "an extension with LF": CHUNKED + b"2;a\nb\r\n{}\r\n0\r\n\r\n" + SECOND,
    "an endless extension": CHUNKED + b"2;" + b"a" * 2_000_000 + b"\r\n{}\r\n0\r\n\r\n" + SECOND,
    "tiny chunks": CHUNKED + b"1\r\n \r\n" * 5000 + b"0\r\n\r\n" + SECOND,
    "many trailers": CHUNKED + b"2\r\n{}\r\n0\r\n" + b"A: b\r\n" * 5000 + b"\r\n" + SECOND,
    "a length as a trailer": CHUNKED + b"2\r\n{}\r\n0\r\nContent-Length: 50\r\n\r\n" + SECOND,
    "a long trailer": CHUNKED + b"2\r\n{}\r\n0\r\nA: " + b"b" * 100_000 + b"\r\n\r\n" + SECOND,
    "a tunnel": b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n" + SECOND,
    "HTTP/0.9": b"GET /healthz\r\n\r\n" + SECOND,
    "HTTP/1.2": b"GET /healthz HTTP/1.2\r\nHost: x\r\n\r\n" + SECOND,
    "HTTP/2.0": b"GET /healthz HTTP/2.0\r\nHost: x\r\n\r\n" + SECOND,
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9),
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n" + SECOND,
    "two hosts": b"GET /healthz HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n" + SECOND,
    "a zero in a header": b"GET /healthz HTTP/1.1\r\nHost: x\0y\r\n\r\n" + SECOND,
    "a space in the path": b"GET /healthz x HTTP/1.1\r\nHost: x\r\n\r\n" + SECOND,
    "a header without an end": b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100_000,
    "too many headers": b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 200 + b"\r\n" + SECOND,
    "empty lines without an end": b"\r\n" * 50_000 + SECOND,
    "too many requests at once": b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 1000 + SECOND,
}
"""Each is answered with a 4xx, or the connection is closed where a response has already begun."""

ANSWERED = {
    "an extension": (CHUNKED + b"2;a=b\r\n{}\r\n0\r\n\r\n", b"200"),
    "a trailer": (CHUNKED + b"2\r\n{}\r\n0\r\nAuthorization: Bearer x\r\n\r\n", b"200"),
    "an absolute address": (b"GET http://evil.example/v1/federations HTTP/1.1\r\nHost: x\r\n\r\n", b"401"),
    "HTTP/1.0": (b"GET /healthz HTTP/1.0\r\n\r\n", b"200"),
    "an upgrade to HTTP/2": (
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        b"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
        b"200",
    ),
    "an upgrade with a body": (post("Connection: Upgrade", "Upgrade: other", "Content-Length: 2") + b"{}", b"200"),
    "a path above the page": (b"GET /page/%2e%2e%2fadmin-token HTTP/1.1\r\nHost: x\r\n\r\n", b"404"),
}
"""What is HTTP, and means the same to everyone."""
LAST = {"HTTP/1.0", "an upgrade to HTTP/2", "an upgrade with a body"}
"""Those after which the connection is closed."""


def exchanged(site: Site, sent: bytes) -> bytes:
    """Return everything that comes back until the connection is closed."""
    host, port = site.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        answer = b""
        try:
            connection.sendall(sent.replace(b"ADMIN", site.admin_token.encode()))
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionError:
            pass
    return answer


@pytest.mark.parametrize("attack", REFUSED)
def test_an_ambiguous_request_ends_its_connection(site: Site, attack: str) -> None:
    answer = exchanged(site, REFUSED[attack])
    assert b"smuggled" not in answer
    assert answer.count(b"HTTP/1.1 2") <= 8  # those before the one that was refused
    if b"HTTP/1.1 2" not in answer and answer:
        assert answer.startswith(b"HTTP/1.1 4")
        assert b'"fix"' in answer
    assert site.client().get("/healthz").status_code == 200


@pytest.mark.parametrize("name", ANSWERED)
def test_what_is_not_ambiguous_is_answered(site: Site, name: str) -> None:
    sent, status = ANSWERED[name]
    last = b"GET /v1/second HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer = exchanged(site, sent + last)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert (b"/v1/second" in answer) is (name not in LAST)
