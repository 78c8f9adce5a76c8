"""One connection: uvicorn's protocol over httptools, with limits that it lacks.

httptools accepts headers of any size and number, however long they take. The app sees them only afterwards, so they are
counted and timed here. Trailers after a body are ignored: no header may arrive after those that were checked. A request
whose end a proxy could see elsewhere is refused. What is not HTTP is answered in the form of all errors. A request to
speak another protocol is answered in this one, and closes the connection: the parser could not tell where the next
request begins.

A body is read when the app asks for it. Until then uvicorn would buffer the first 64 KiB of each: a thousand updates
that wait for their turn must wait in the network, which slows their senders down, and not in this process's memory.

This overrides internals of uvicorn, so its version is pinned exactly.
"""

import asyncio
import weakref
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from coordinator.http.connections import CONNECTION, Connections, Reader, forget_unread, send_little_ahead
from coordinator.http.error_handlers import error_body
from coordinator.http.request_limits import has_body
from coordinator.http.server_settings import ServerLimits

__all__ = ["protocol_class"]

_READ_BYTES = 256 * 1024
_HEAD_BYTES = 8 * 1024
_LEAST_CHUNK = 64
"""Bytes of a chunk of a body, on average: parsing each takes as long as a thousand bytes."""
_SOME_CHUNKS = 100
_MOST_QUEUED = 8
"""Requests that may wait on a connection while an earlier one is answered: each takes a thousand times its bytes."""


def protocol_class(limits: ServerLimits) -> type[asyncio.BaseProtocol]:
    """Return the class of connections with these limits, which uvicorn instantiates."""

    class Limited(LimitedProtocol):
        registry = Connections(limits)
        header_bytes = limits.header_bytes
        header_count = limits.header_count
        header_seconds = limits.header_seconds

    class Connection(MeasuredReads):
        connection = Limited
        buffer = memoryview(bytearray(_READ_BYTES))

    return Connection


class MeasuredReads(asyncio.BufferedProtocol):
    """Reads for a connection: little while it expects headers, more once its app has asked for a body."""

    connection: type["LimitedProtocol"]
    buffer: memoryview
    """One buffer for all connections of a server: it is copied before anything else is read."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._http = self.connection(*args, **kwargs)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass on that the connection is open."""
        self._http.connection_made(cast(asyncio.Transport, transport))  # uvloop's is not a subclass

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass on that the connection is closed."""
        self._http.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass on that the caller does not keep up."""
        self._http.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the caller keeps up again."""
        self._http.resume_writing()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer to read into, which limits how much is read."""
        return self.buffer if self._http.answering else self.buffer[:_HEAD_BYTES]

    def buffer_updated(self, nbytes: int) -> None:
        """Pass on what was read."""
        self._http.data_received(bytes(self.buffer[:nbytes]))


class _OneWrite:
    """The transport of one response. It holds the head back until the body follows: two writes would be two system
    calls, and wake the caller twice."""

    __slots__ = ("_begun", "_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None
        self._begun = False

    def write(self, data: bytes) -> None:
        """Write a part of the response, of which the first is its head."""
        if self._begun or data.startswith(b"HTTP/1.1 100 "):  # the caller waits for that one before the response
            self._transport.write(data)
        elif self._head is None:
            self._head = data
        else:
            self._begun = True
            self._transport.writelines([self._head, data])

    def close(self) -> None:
        """Close the connection after what was written."""
        if self._head is not None and not self._begun:
            self.write(b"")
        self._transport.close()

    def is_closing(self) -> bool:
        """Return whether the connection is closing."""
        return self._transport.is_closing()


class LimitedProtocol(HttpToolsProtocol):
    """A connection whose headers are limited in size and time, and which reads a body only on request."""

    registry: Connections
    header_bytes: int
    header_count: int
    header_seconds: float

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._counted = self._unparsed = self._body = self._chunks = 0
        self._timer: asyncio.TimerHandle | None = None
        self._in_headers = False
        self._reference = weakref.ref(self)
        self.owner = ""
        self.reader = Reader(None)

    @property
    def answering(self) -> bool:
        """Whether the app has a request that it has not answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, and start the timer that closes it if it stays silent."""
        super().connection_made(transport)
        self.reader.transport = transport
        if self.registry.open(self, self.client[0] if self.client else ""):
            self._expect_headers()
        else:
            self._refuse(503, "there are too many connections", "Try again later.", b"retry-after: 10\r\n")

    def abort(self) -> None:
        """Close the connection at once."""
        forget_unread(self.transport)
        self.transport.abort()

    def resume_writing(self) -> None:
        """Note that the caller has read a part of the response."""
        self.reader.resumed += 1
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Parse what arrived. Start the timer if the headers are incomplete, or if nothing has begun."""
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > self.header_bytes and not self.transport.is_closing():
            self._refuse(431, "a header or a line of the request is too large", "Send a shorter one.")
        waiting = self._in_headers or not (self.answering or self.timeout_keep_alive_task)
        if waiting and self._timer is None and not self.transport.is_closing():
            self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_timer()
        self.registry.close(self)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Start to count the headers of a request."""
        super().on_message_begin()
        self.scope[CONNECTION] = self._reference  # type: ignore[literal-required]
        self._counted = self._unparsed = self._body = self._chunks = 0
        self._in_headers = True

    def on_url(self, url: bytes) -> None:
        """Count the first line."""
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header. One that arrives after the headers is a trailer."""
        if self._in_headers:
            super().on_header(name, value)
        self._count(len(name) + len(value) + 4)
        if len(self.headers) > self.header_count and not self.transport.is_closing():
            self._refuse(431, f"the request has more than {self.header_count} headers", "Send fewer.")

    def on_headers_complete(self) -> None:
        """Hand the request to the app, which resumes reading when it wants the body."""
        self._stop_timer()
        self._in_headers, self._unparsed = False, 0
        if len(self.pipeline) >= _MOST_QUEUED or self._is_ambiguous():
            self.send_400_response("")
        if not self.transport.is_closing():
            super().on_headers_complete()
            if self.parser.should_upgrade():
                self.cycle.keep_alive = False
            if not self.cycle.keep_alive:
                send_little_ahead(self.transport)
            if self.scope["method"] != "HEAD":  # its response ends with its head
                self.cycle.transport = cast(asyncio.Transport, _OneWrite(self.transport))
            if has_body(self.headers):
                self.flow.pause_reading()

    def on_body(self, body: bytes) -> None:
        """Count the body, and keep it for the app."""
        self._unparsed = 0
        self._body += len(body)
        super().on_body(body)

    def on_chunk_header(self) -> None:
        """Refuse a body of tiny chunks."""
        self._chunks += 1
        if self._chunks > _SOME_CHUNKS and self._body < _LEAST_CHUNK * (self._chunks - 1):
            self.send_400_response("")
            raise ValueError("the rest is not parsed")

    def _is_ambiguous(self) -> bool:
        """Return whether another server might see another request here, or another end of it."""
        version = self.parser.get_http_version()
        hosts = [value for name, value in self.headers if name == b"host"]
        codings = [value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"]
        if version == "1.1":
            return len(hosts) != 1 or codings not in ([], [b"chunked"])
        return version != "1.0" or len(hosts) > 1 or bool(codings)

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: the request is answered."""

    def on_response_complete(self) -> None:
        """Read on, but only once no request waits."""
        super().on_response_complete()
        if self.pipeline and not self.transport.is_closing():
            self.flow.pause_reading()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP."""
        if not self.transport.is_closing():
            self._refuse(
                400,
                "this is not an HTTP request",
                "Use HTTP/1.1 with one Host header, and https:// if the coordinator has a certificate.",
            )

    def _count(self, size: int) -> None:
        self._counted += size
        if self._counted > self.header_bytes and not self.transport.is_closing():
            self._refuse(431, "the headers of the request are too large", "Send fewer or shorter ones.")

    def _expect_headers(self) -> None:
        self._timer = self.loop.call_later(self.header_seconds, self._too_slow)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._refuse(408, "the headers of the request did not arrive", "Send the request again.")

    def _refuse(self, status: int, problem: str, fix: str, header: bytes = b"") -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.close()  # an earlier response is being written: nothing may be written into it
            return
        body = error_body(problem, fix)
        head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + header + head + body)
        self.transport.close()
