"""The outermost middleware: gives every request an id, a log line, a count, and an answer even if there is a bug."""

import itertools
import logging
import secrets
import time

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from coordinator.http.error_handlers import error_response, log_error
from coordinator.http.refusals import RefusedAttempts
from coordinator.http.request_limits import has_body
from coordinator.observability.logs import REQUEST_ID
from coordinator.observability.metrics import Metrics

__all__ = ["RequestMiddleware"]

_log = logging.getLogger("coordinator.requests")

_FREQUENT = frozenset({"/v1/tasks/next", "/v1/artifacts/{digest}", "/v1/tasks/{task_id}/result", "/healthz", "/readyz"})
"""Routes whose successes are logged only at debug level."""
_GONE = 499
"""The logged status of a caller that disconnected; it is never sent."""
_METHODS = frozenset({"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"})


class RequestMiddleware:
    """The outermost layer. Plain ASGI, and as little as possible: every poll goes through it."""

    def __init__(self, app: ASGIApp, metrics: Metrics, refused: RefusedAttempts) -> None:
        self._app, self._metrics, self._refused = app, metrics, refused
        # No random bytes for each request: every system call releases the interpreter to another thread.
        self._prefix, self._numbers = secrets.token_hex(4), itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = f"{self._prefix}-{next(self._numbers)}"
        token = REQUEST_ID.set(request_id)
        began = time.perf_counter()
        exchange = _Exchange(scope, receive, send, request_id)
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            exchange.status = _GONE
        except Exception as error:
            await self._fail(scope, exchange, error)
        finally:
            self._log_and_count(scope, exchange, time.perf_counter() - began)
            REQUEST_ID.reset(token)

    async def _fail(self, scope: Scope, exchange: "_Exchange", error: Exception) -> None:
        converted = log_error(error)
        if exchange.status:
            raise error  # the response has begun: it can only be broken off
        await error_response(converted)(scope, exchange.receive, exchange.send)

    def _log_and_count(self, scope: Scope, exchange: "_Exchange", seconds: float) -> None:
        route, method, status = _route(scope), scope["method"], exchange.status or _GONE
        # The caller chose the method: only existing ones may become labels and log lines.
        method = method if method in _METHODS else "OTHER"
        self._metrics.request(route, method, status, seconds)
        self._metrics.traffic(exchange.received, exchange.sent)
        self._refused.after(scope, method, route, status)
        level = logging.DEBUG if status < 400 and route in _FREQUENT else logging.INFO
        if _log.isEnabledFor(level):
            extra = {"status": status, "ms": round(seconds * 1000, 1)}
            device = scope.get("edgefl.device")
            _log.log(level, "%s %s", method, route, extra=extra if device is None else extra | {"device": device})


class _Exchange:
    """Counts bytes. A response before the end of the request body closes the connection: a caller that was refused must
    not hold it by sending more."""

    __slots__ = ("_more", "_receive", "_scope", "_send", "received", "sent", "status", "whole")

    def __init__(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._more = [(b"x-request-id", request_id.encode()), (b"x-content-type-options", b"nosniff")]
        self.status = self.received = self.sent = 0
        self.whole = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self.received += len(message.get("body", b""))
            self.whole = not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message.get("headers", ()), *self._more]
            if not self.whole and has_body(self._scope["headers"]) and (b"connection", b"close") not in headers:
                headers.append((b"connection", b"close"))
            message["headers"] = headers
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)


def _route(scope: Scope) -> str:
    """Return the template of the route: it contains no secrets, and there are few of them."""
    return getattr(scope.get("route"), "path", "(none)")
