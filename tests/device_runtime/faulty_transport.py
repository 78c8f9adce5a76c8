"""A transport that breaks on purpose, in the ways that networks do. Tests of survival wrap another transport in it.

A fault strikes before the coordinator has seen the request, or after, when only the answer is lost: the device cannot
tell these apart, and must be right in both.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum

from device_runtime.agent.transport import Reply, Request, Sink, Transport, UnreachableError

__all__ = ["Fault", "FaultyTransport"]


class Fault(StrEnum):
    """What goes wrong with one request."""

    NONE = "none"
    TIMEOUT_BEFORE = "timeout before"
    """The request never arrives."""
    RESET_AFTER = "reset after"
    """The coordinator has done it, and the answer is lost."""
    TRUNCATED = "truncated"
    """A part of the answer arrives."""
    SERVER_ERROR = "server error"
    """Status 500, and nothing was done."""
    TOO_MANY = "too many"
    """Status 429 with a time to wait."""
    SLOW_DRIP = "slow drip"
    """The answer comes byte by byte, and in the end it is all there."""
    GARBLED = "garbled"
    """A byte of a download is another one. (Answers in JSON have no digest: against that, there is TLS.)"""


class FaultyTransport:
    """Gives every request to another transport, with the next of the given faults; without any when they run out."""

    def __init__(self, inner: Transport, faults: Iterator[Fault]) -> None:
        self._inner, self._faults = inner, faults

    def send(self, request: Request, sink: Sink | None = None) -> Reply:
        """Send a request, or fail to."""
        match next(self._faults, Fault.NONE):
            case Fault.TIMEOUT_BEFORE:
                raise _lost("it timed out")
            case Fault.SERVER_ERROR:
                return Reply(500)
            case Fault.TOO_MANY:
                return Reply(429, {"retry-after": "0.001"})
            case Fault.RESET_AFTER:
                self._inner.send(request, None)
                raise _lost("the connection was reset")
            case Fault.TRUNCATED:
                return self._changed(request, sink, lambda body: body[: len(body) // 2], lost=sink is not None)
            case Fault.GARBLED if sink is not None:
                return self._changed(request, sink, _garbled, lost=False)
            case Fault.SLOW_DRIP:
                return self._dripping(request, sink)
        return self._inner.send(request, sink)

    def close(self) -> None:
        """Close the other transport."""
        self._inner.close()

    def _changed(self, request: Request, sink: Sink | None, change: Callable[[bytes], bytes], *, lost: bool) -> Reply:
        reply = self._inner.send(request, None)
        body = change(reply.body)
        if sink is not None and reply.status in (200, 206):
            sink(reply.status, body, len(body))
            body = b""
        if lost:
            raise _lost("the body was cut short")
        return Reply(reply.status, reply.headers, body, reply.down_bytes, reply.up_bytes)

    def _dripping(self, request: Request, sink: Sink | None) -> Reply:
        reply = self._inner.send(request, None)
        if sink is None or reply.status not in (200, 206):
            return reply
        step = max(1, len(reply.body) // 200)
        for start in range(0, len(reply.body), step):
            piece = reply.body[start : start + step]
            sink(reply.status, piece, len(piece))
        return Reply(reply.status, reply.headers, b"", reply.down_bytes, reply.up_bytes)


def _garbled(body: bytes) -> bytes:
    middle = len(body) // 2
    return body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :] if body else body


def _lost(why: str) -> UnreachableError:
    return UnreachableError(f"the coordinator cannot be reached: {why}", fix="Try again.")
