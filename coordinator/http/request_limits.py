"""Limits on the size and speed of requests, as ASGI middleware around the whole app.

Headers are counted here and, before they fill the memory, in `coordinator.http.protocol`. A body is limited while it
streams in, compressed and decompressed, by the size that its route declares, or by what the route has found out about
this request; it is read only once its route has authenticated the caller. Rates are in `coordinator.http.rate_limits`,
the bytes of all bodies together in `coordinator.http.byte_budgets`.
"""

import asyncio
import sys
import time
import zlib
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coordinator.http.error_handlers import HttpError
from coordinator.http.server_settings import ServerLimits
from edgefl.values import format_bytes
from edgefl.wire import byte_shuffle

__all__ = ["GROUPED", "MOST_BYTES", "TAKES_GZIP", "TAKES_PLANES", "LimitsMiddleware", "has_body", "most_bytes"]

MOST_BYTES = "x-most-bytes"
"""The key in a route's `openapi_extra` for the largest body in bytes, and in a request's scope if that is less."""
TAKES_GZIP = "x-takes-gzip"
"""The key for whether a body may be compressed; by default it may."""
TAKES_PLANES = "x-takes-planes"
"""The key for whether a body may be byte-shuffled below gzip (`edgefl.wire.byte_shuffle`)."""
GROUPED = "edgefl.grouped"
"""The key in a request's scope that is set, once its body has begun, if it is byte-shuffled: its route undoes it."""

_PIECE = 64 * 1024
_CLOSE = {"Connection": "close"}


def most_bytes(scope: Scope) -> int:
    """Return how large the body of a request may be."""
    extra = getattr(scope.get("route"), "openapi_extra", None) or {}
    most: int = min(extra.get(MOST_BYTES, 0), scope.get(MOST_BYTES, sys.maxsize))
    return min(most, byte_shuffle.MOST_BYTES) if scope.get(GROUPED, False) else most


def has_body(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a body follows these headers of a request."""
    return any(name == b"transfer-encoding" or (name == b"content-length" and value != b"0") for name, value in headers)


class LimitsMiddleware:
    """Rejects requests that are too large or too slow."""

    def __init__(self, app: ASGIApp, limits: ServerLimits) -> None:
        self._app, self._limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._check_head(scope)
        await self._app(scope, _Body(scope, receive, self._limits).receive, send)

    def _check_head(self, scope: Scope) -> None:
        limits, headers = self._limits, scope["headers"]
        size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if size + sum(len(name) + len(value) + 4 for name, value in headers) > limits.header_bytes:
            raise HttpError(
                431,
                f"the headers of the request are larger than {format_bytes(limits.header_bytes)}",
                fix="Send fewer or shorter ones.",
                headers=_CLOSE,
            )
        if scope["query_string"].count(b"&") >= limits.query_count:  # before anything parses them
            raise HttpError(
                414,
                f"the query has more than {limits.query_count} parameters",
                fix="Send those that /openapi.json names.",
                headers=_CLOSE,
            )


class _Body:
    """The body of one request as it arrives: limited, timed, decompressed."""

    def __init__(self, scope: Scope, receive: Receive, limits: ServerLimits) -> None:
        self._scope, self._receive, self._limits = scope, receive, limits
        self._began: float | None = None
        self._most = self._most_packed = 0
        self._arrived = 0
        self._unpacker: _Unpacker | None = None
        self._ended = False

    async def receive(self) -> Message:
        """Return the next part of the body, or that the caller has disconnected."""
        if self._ended:
            return await self._receive()
        if self._began is None:
            self._begin()
        if self._unpacker is not None and self._unpacker.has_more:
            await asyncio.sleep(0)  # others' turn: a small body may become a large one
            return self._message(self._unpacker.next(), not self._unpacker.last)
        message = await self._in_time()
        if message["type"] != "http.request":
            return message
        body, more = message.get("body", b""), message.get("more_body", False)
        self._arrived += len(body)
        if self._arrived > self._most_packed:
            raise _too_large(self._most)
        if self._unpacker is None:
            return self._message(body, more)
        return self._message(self._unpacker.feed(body, last=not more), more)

    def _begin(self) -> None:
        """Check what the headers say about the body, now that its route is known."""
        self._began = time.monotonic()
        extra = getattr(self._scope.get("route"), "openapi_extra", None) or {}
        codings = _codings(self._scope["headers"])
        taken = [["gzip"]] if extra.get(TAKES_GZIP, True) else []
        if extra.get(TAKES_PLANES, False):
            taken.insert(0, byte_shuffle.codings_in(byte_shuffle.CODINGS))
        if codings and codings not in taken:
            raise HttpError(
                415,
                f"the body is encoded with {', '.join(codings)[:80]!r}",
                fix="Send it unencoded, or in an encoding of the header Accept-Encoding.",
                headers={"Accept-Encoding": ", ".join([*(", ".join(coding) for coding in taken[:1]), "identity"])},
            )
        self._scope[GROUPED] = len(codings) > 1
        self._most = most_bytes(self._scope)
        self._most_packed = self._most + (self._most // 1000 + 100 if codings else 0)  # noise becomes larger
        length = dict(self._scope["headers"]).get(b"content-length", b"")
        if length.isdigit() and int(length) > self._most_packed:
            raise _too_large(self._most)
        if codings:
            self._unpacker = _Unpacker(self._most)

    async def _in_time(self) -> Message:
        assert self._began is not None
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                message = await self._receive()
        except TimeoutError:
            raise self._too_slow() from None
        elapsed = time.monotonic() - self._began
        if elapsed > self._limits.body_seconds and self._arrived < elapsed * self._limits.body_rate:
            raise self._too_slow()
        return message

    def _too_slow(self) -> HttpError:
        return HttpError(
            408,
            f"the body arrived too slowly: {format_bytes(self._arrived)} so far",
            fix="Send it again over a better network.",
            headers=_CLOSE,
        )

    def _message(self, body: bytes, more: bool) -> Message:
        more = more or (self._unpacker is not None and self._unpacker.has_more)
        self._ended = not more
        return {"type": "http.request", "body": body, "more_body": more}


class _Unpacker:
    """gzip, decompressed piece by piece, so that a small body never becomes a large one in memory."""

    def __init__(self, most: int) -> None:
        self._most, self._unpacked = most, 0
        self._inflater = zlib.decompressobj(wbits=31)
        self._packed = b""
        self.last = False
        """Whether nothing more will arrive."""
        self.has_more = False
        """Whether something can be decompressed before more arrives."""

    def feed(self, packed: bytes, *, last: bool) -> bytes:
        """Take what arrived, and return its first piece."""
        self._packed, self.last = packed, last
        return self.next()

    def next(self) -> bytes:
        """Return the next piece."""
        try:
            piece = self._inflater.decompress(self._packed, min(_PIECE, self._most - self._unpacked + 1))
        except zlib.error:
            raise _bad_gzip("the body is declared as gzip, but is not") from None
        self._packed = self._inflater.unconsumed_tail
        self._unpacked += len(piece)
        if self._unpacked > self._most:
            raise _too_large(self._most)
        if self._inflater.unused_data:
            raise _bad_gzip("something follows the end of the gzip body")
        # After a full piece, zlib may hold more output, with no input left.
        self.has_more = not self._inflater.eof and (bool(self._packed) or len(piece) == _PIECE)
        if self.last and not self.has_more and not self._inflater.eof:
            raise _bad_gzip("the gzip body is cut short")
        return piece


def _codings(headers: Iterable[tuple[bytes, bytes]]) -> list[str]:
    """Return the encodings of a body, in the order in which they were applied."""
    header = ",".join(value.decode("ascii", "replace") for name, value in headers if name == b"content-encoding")
    return byte_shuffle.codings_in(header)


def _bad_gzip(problem: str) -> HttpError:
    return HttpError(400, problem, fix="Compress it again, as one stream, or send it uncompressed.", headers=_CLOSE)


def _too_large(most: int) -> HttpError:
    problem = f"the body is larger than {format_bytes(most)}" if most else "this request takes no body"
    return HttpError(413, problem, fix="Send less; the coordinator sets the limit.", headers=_CLOSE)
