"""One connection: uvicorn's protocol over httptools, with limits that it has not.

httptools keeps headers as long as they come, for as long as they take. The app can only look at them afterwards, so
they are counted and timed here. What is no HTTP at all is answered in the one form of all errors.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from coordinator.problems import problem_body
from coordinator.server_settings import ServerLimits

__all__ = ["connection_class"]


def connection_class(limits: ServerLimits) -> type[asyncio.Protocol]:
    """Return the class of connections with these limits, for uvicorn to make."""

    class Connection(LimitedConnection):
        header_bytes = limits.header_bytes
        header_seconds = limits.header_seconds

    return Connection


class LimitedConnection(HttpToolsProtocol):
    """A connection whose headers are limited in size and time."""

    header_bytes: int
    header_seconds: float

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._counted = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A connection that says nothing is closed after a while."""
        super().connection_made(transport)
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Begin to count and to time the headers of a request."""
        super().on_message_begin()
        self._counted = 0
        if self._timer is None:
            self._expect_headers()

    def on_url(self, url: bytes) -> None:
        """Count the first line."""
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header."""
        super().on_header(name, value)
        self._count(len(name) + len(value) + 4)

    def on_headers_complete(self) -> None:
        """The app takes over."""
        self._stop_timer()
        if not self.transport.is_closing():
            super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        if not self.transport.is_closing():
            self._refuse(
                400, "this is no HTTP request", "Speak HTTP/1.1, and https:// where the coordinator has a certificate."
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
            self._refuse(408, "the headers of the request did not come", "Send the request again.")

    def _refuse(self, status: int, problem: str, fix: str) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.close()  # an earlier request's answer is under way: nothing may be written into it
            return
        body = problem_body(problem, fix)
        head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self.transport.close()
