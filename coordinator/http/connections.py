"""The open connections of a process: how many each caller may have, and that callers read what they are sent.

A connection counts for its address until it has shown a valid token, then for the device or the operator. One too many
closes the oldest of the same caller, so that nobody takes the connections of others, and a device whose network drops
connections is never locked out. Every few seconds, those whose caller does not read its response are closed: until
then they hold a file descriptor and a part of the response.
"""

import asyncio
import contextlib
import fcntl
import resource
import socket
import struct
import termios
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.types import Scope

from coordinator.http.rate_limits import rate_limited_address
from coordinator.http.server_settings import ServerLimits

__all__ = ["CONNECTION", "Connections", "Reader", "claim_connection", "forget_unread", "send_little_ahead"]

CONNECTION = "edgefl.connection"
"""The key in a request's scope for a weak reference to its connection."""

_KEPT_FILES = 16
"""One file descriptor of this many stays free of connections: for the database, spool files and bodies."""
_LEAST_KEPT_FILES = 128
_LITTLE_SENT = 64 * 1024
"""Bytes that the system may go on sending after a connection was closed."""
_AT_ONCE = struct.pack("ii", 1, 0)


class OpenConnection(Protocol):
    """What is known of a connection."""

    owner: str
    """Whom it counts for."""
    reader: "Reader"

    @property
    def registry(self) -> "Connections":
        """The connections that it is one of."""
        ...

    @property
    def answering(self) -> bool:
        """Whether it has a request that is not answered."""
        ...

    def abort(self) -> None:
        """Close it at once, without sending what is left."""
        ...


class Connections:
    """The open connections."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._most = _most_connections() if limits.connections is None else limits.connections
        self._most_of_address = min(limits.address_connections, max(1, self._most // 2))
        self._by_owner: dict[str, dict[OpenConnection, None]] = {}
        self._count = 0
        self._sweeping: asyncio.TimerHandle | None = None

    def open(self, connection: OpenConnection, host: str) -> bool:
        """Count a new connection from an address; return False if there are too many."""
        if self._count >= self._most:
            return False
        self._count += 1
        self._add(connection, f"address {rate_limited_address(host)}", self._most_of_address)
        if self._sweeping is None:
            self._sweep_later()
        return True

    def claim(self, connection: OpenConnection, owner: str) -> None:
        """Count a connection for a caller who has shown a valid token."""
        if connection.owner not in ("", owner):
            self._remove(connection)
            is_device = owner.startswith("device ")
            self._add(
                connection, owner, self._limits.device_connections if is_device else self._limits.operator_connections
            )

    def close(self, connection: OpenConnection) -> None:
        """Forget a connection that was closed."""
        if connection.owner:
            self._count -= 1
            self._remove(connection)
            connection.owner = ""

    def _add(self, connection: OpenConnection, owner: str, most: int) -> None:
        own = self._by_owner.setdefault(owner, {})
        if len(own) >= most:
            idle = (one for one in own if not one.answering)
            oldest = next(idle, next(iter(own)))  # of those that nobody waits for, or else of all
            self.close(oldest)
            oldest.abort()
        connection.owner = owner
        self._by_owner.setdefault(owner, {})[connection] = None

    def _remove(self, connection: OpenConnection) -> None:
        own = self._by_owner.get(connection.owner, {})
        own.pop(connection, None)
        if not own:
            self._by_owner.pop(connection.owner, None)

    def _sweep_later(self) -> None:
        seconds = min(5.0, self._limits.read_seconds / 2)
        self._sweeping = asyncio.get_running_loop().call_later(seconds, self._sweep)

    def _sweep(self) -> None:
        now, limits = time.monotonic(), self._limits
        self._sweeping = None
        if self._count:
            self._sweep_later()  # first, so that it goes on whatever happens
        for own in list(self._by_owner.values()):
            for connection in list(own):
                if connection.reader.is_too_slow(now, limits.read_seconds, limits.read_rate):
                    connection.abort()


@dataclass(slots=True)
class Reader:
    """How fast a caller reads what was written to its connection."""

    transport: Any
    resumed: int = 0
    """How often a full buffer became empty enough to write more."""
    _since: float = 0.0
    """When the caller last kept up; 0 while nothing waits for it."""
    _unread: int = 0
    _resumed: int = 0

    def is_too_slow(self, now: float, seconds: float, rate: float) -> bool:
        """Return whether less than `rate` bytes per second were read in the last `seconds`, although there was more."""
        waiting = self.transport.get_write_buffer_size()
        if not waiting:
            self._since = 0.0
            return False
        unread = waiting + _in_kernel(self.transport)
        kept_up = self.resumed != self._resumed or self._unread - unread >= rate * (now - self._since)
        if not self._since or kept_up:
            self._since, self._unread, self._resumed = now, unread, self.resumed
        return now - self._since >= seconds


def forget_unread(transport: Any) -> None:
    """Let the system drop what the caller has not read, when a connection is closed. It would otherwise keep megabytes
    of its own memory for each caller that stopped reading, long after the connection has ceased to count."""
    if _in_kernel(transport) > _LITTLE_SENT:
        with contextlib.suppress(OSError, AttributeError):
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)


def send_little_ahead(transport: Any) -> None:
    """Let the system take only a little of a response before the caller reads it: the connection is closed when the
    system has all of it, and does not count any more."""
    with contextlib.suppress(OSError, AttributeError):
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LITTLE_SENT)


def claim_connection(scope: Scope, owner: str) -> None:
    """Count the connection of a request for its caller, who has shown a valid token."""
    reference: Callable[[], OpenConnection | None] | weakref.ref[Any] | None = scope.get(CONNECTION)
    connection = None if reference is None else reference()
    if connection is not None and connection.owner != owner:
        connection.registry.claim(connection, owner)


def _in_kernel(transport: Any) -> int:
    """Return the bytes that the system has accepted and the caller's system has not: a slow network takes a while for
    them, in which nothing more is written."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        sock = transport.get_extra_info("socket")
        return int(struct.unpack("i", fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4)))[0])
    return 0


def _most_connections() -> int:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(1, files - max(_LEAST_KEPT_FILES, files // _KEPT_FILES))
