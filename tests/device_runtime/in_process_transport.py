"""A transport to a coordinator in the same process: no sockets, no ports, the same requests and replies."""

from collections.abc import Callable

from device_runtime.agent.transport import Reply, Request, Sink

__all__ = ["InProcessTransport"]

_PIECE = 65_536


class InProcessTransport:
    """Calls a function that answers requests."""

    def __init__(self, answer: Callable[[Request], Reply]) -> None:
        self._answer = answer

    def send(self, request: Request, sink: Sink | None = None) -> Reply:
        """Call the function; a sink gets the body in pieces, as from a network."""
        reply = self._answer(request)
        sizes = {"down_bytes": len(reply.body), "up_bytes": len(request.body)}
        if sink is None or reply.status not in (200, 206):
            return Reply(reply.status, reply.headers, reply.body, **sizes)
        for start in range(0, len(reply.body), _PIECE):
            piece = reply.body[start : start + _PIECE]
            sink(reply.status, piece, len(piece))
        return Reply(reply.status, reply.headers, b"", **sizes)

    def close(self) -> None:
        """There is nothing to close."""
