"""Responses: documents, streams whose pieces come from threads, and the encodings that a caller accepts."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from coordinator.thread_pools import ThreadPools
from edgefl.values import dumps

__all__ = ["Pieces", "document", "from_thread", "has_tag", "taken_codings"]

_DISCONNECT_CHECK = 16
"""Pieces between two checks whether the caller has disconnected."""
_LONGEST_LIST = 2048
"""Characters of a header with a list that are read: strangers may send thousands of items, and nobody needs them."""
_EXCLUDED = frozenset({"q=0", "q=0.0", "q=0.00", "q=0.000"})


def document(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value of `edgefl.values` as a response."""
    return Response(dumps(value).encode(), status, headers, media_type="application/json")


class Pieces(Response):
    """A body that is sent piece by piece. Its headers give its length, if known."""

    def __init__(self, pieces: AsyncIterator[bytes], status: int, headers: Mapping[str, str], kind: str) -> None:
        super().__init__(b"", status, headers, kind)
        self._pieces = pieces
        if "content-length" not in {name.lower() for name in headers}:
            del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the body, and stop when the caller disconnects."""
        request = Request(scope, receive)
        piece: bytes | None = await anext(self._pieces, None)  # first, so that an error can still become a response
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        number = 0
        while piece is not None:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            number += 1
            if number % _DISCONNECT_CHECK == 0 and await request.is_disconnected():
                return
            piece = await anext(self._pieces, None)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def from_thread(threads: ThreadPools, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Give the pieces of a blocking iterator."""
    while (piece := await threads.run(next, pieces, None)) is not None:
        yield piece


def taken_codings(header: str | None) -> frozenset[str]:
    """Return the encodings that an Accept-Encoding header accepts, in lower case."""
    taken = set()
    for part in (header or "")[:_LONGEST_LIST].lower().split(","):
        name, _, quality = part.partition(";")
        if quality.replace(" ", "") not in _EXCLUDED:
            taken.add("gzip" if name.strip() == "x-gzip" else name.strip())
    return frozenset(taken)


def has_tag(header: str | None, tags: Iterable[str]) -> bool:
    """Return whether an If-None-Match header names one of these tags."""
    if header is None:
        return False
    named = {tag.strip().removeprefix("W/") for tag in header[:_LONGEST_LIST].split(",")}
    return "*" in named or not named.isdisjoint(tags)
