"""The response that streams server-sent events."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

__all__ = ["EventStream"]


class EventStream(Response):
    """Events as they come, until the last one or until the caller disconnects, which is noticed at once."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[bytes]) -> None:
        # nginx would hold events back.
        super().__init__(b"", 200, {"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._events = events
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            while (event := await _next(self._events, gone)) is not None:
                await send({"type": "http.response.body", "body": event, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            await self._events.aclose()  # type: ignore[attr-defined]  # it is a generator


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _next(events: AsyncIterator[bytes], gone: "asyncio.Future[None]") -> bytes | None:
    """Return the next event; None after the last one, and if the caller disconnects first."""
    coming = asyncio.ensure_future(_first(events))
    waiting: list[asyncio.Future[Any]] = [coming, gone]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    if coming.done():
        return coming.result()
    coming.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await coming
    return None


async def _first(events: AsyncIterator[bytes]) -> bytes | None:
    return await anext(events, None)
