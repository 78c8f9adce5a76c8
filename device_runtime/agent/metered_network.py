"""Connections that count every byte and end at a limit: of bytes, and of the time until an answer is complete.

The HTTP transport's connections are made here. Above this, one cannot see what a reply really took: answers with status
1xx, extensions of chunks, and the padding of TLS records are dropped on the way up. Linux tells what came over TCP;
elsewhere, what was read is counted.
"""

import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Iterable
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

from device_runtime.agent.traffic import Traffic
from edgefl.coordinator_url import is_loopback
from edgefl.errors import EdgeFLError

__all__ = ["MeteredNetwork", "open_connections"]

_RECEIVED = struct.Struct("=Q")
_RECEIVED_AT = 128
"""Offset of `tcpi_bytes_received` in Linux's `struct tcp_info`, since Linux 4.1."""
_BUFFER_BYTES = 32 * 1024
"""Of what a sender pushes, the system holds about twice this before it is read, and that can exceed a limit."""


class MeteredNetwork(httpcore.NetworkBackend):
    """Opens connections whose bytes are counted."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._network = httpcore.SyncBackend()
        self.reply_seconds: float | None = None
        """Seconds from the end of a request to the end of its reply, at the most; None means no limit."""
        self.reply_bytes: int | None = None
        """Bytes of a reply, at the most, whatever they are; None means no limit."""

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to a host."""
        self._traffic.check()
        stream = self._network.connect_tcp(host, port, timeout, local_address, socket_options)
        if self._traffic.most is not None or self._traffic.will_be_limited:
            stream.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        return _MeteredStream(stream, self, self._traffic)


def open_connections(url: httpx.URL, tls: ssl.SSLContext | None, network: MeteredNetwork) -> httpcore.ConnectionPool:
    """Return connections to an address, through a proxy if the environment names one for it (HTTPS_PROXY, NO_PROXY).

    To this machine they are direct: plain HTTP is allowed there because nobody is on the way. The other side is checked
    as `tls` says, or else against the known authorities; a proxy only passes on what is encrypted.
    """
    if tls is None:
        tls = httpx.create_ssl_context()
    proxies = {} if is_loopback(url.host) or proxy_bypass(url.host) else getproxies()
    named = proxies.get(url.scheme) or proxies.get("all")
    if not named:
        return httpcore.ConnectionPool(ssl_context=tls, network_backend=network)
    proxy = httpx.Proxy(named if "://" in named else f"http://{named}")
    if proxy.url.scheme not in ("http", "https"):
        raise EdgeFLError(f"the proxy {proxy.url.scheme}://... is not supported", fix="Name an HTTP proxy, or none.")
    return httpcore.HTTPProxy(
        proxy_url=httpcore.URL(str(proxy.url)),
        proxy_auth=proxy.raw_auth,
        ssl_context=tls,
        network_backend=network,
    )


class _MeteredStream(httpcore.NetworkStream):
    """A connection."""

    def __init__(
        self, stream: httpcore.NetworkStream, network: MeteredNetwork, traffic: Traffic, counted: int = 0
    ) -> None:
        self._stream, self._network, self._traffic = stream, network, traffic
        self._counted = self._read = counted
        """Bytes of this connection that are counted, and those that were read: some may be waiting to be read."""
        self._asked: float | None = None
        """When the present reply was first waited for."""
        self._before = 0
        """What had been read then."""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read a piece, of no more than may still come."""
        self._traffic.check()
        left = self._traffic.left
        data = self._stream.read(max_bytes if left is None else min(max_bytes, left), self._patience(timeout))
        self._count(len(data))
        most = self._network.reply_bytes
        if most is not None and self._read - self._before > most:
            raise httpcore.RemoteProtocolError("the reply is too large")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write a piece."""
        self._traffic.check(len(buffer))
        self._asked = None
        self._stream.write(buffer, timeout)
        self._traffic.count(up=len(buffer))

    def close(self) -> None:
        """Close the connection."""
        self._count(0)
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Encrypt the connection."""
        stream = self._stream.start_tls(ssl_context, server_hostname, timeout)
        return _MeteredStream(stream, self._network, self._traffic, self._counted)

    def get_extra_info(self, info: str) -> Any:
        """Return a fact about the connection."""
        return self._stream.get_extra_info(info)

    def _patience(self, timeout: float | None) -> float | None:
        """Return how long to wait for the next piece: each is soon followed by another, or the reply takes too long."""
        if self._asked is None:
            self._asked, self._before = time.monotonic(), self._read
        seconds = self._network.reply_seconds
        if seconds is None:
            return timeout
        remaining = self._asked + seconds - time.monotonic()
        if remaining <= 0:
            raise httpcore.ReadTimeout("the reply takes too long")
        return remaining if timeout is None else min(timeout, remaining)

    def _count(self, read: int) -> None:
        self._read += read
        came = max(self._read, self._counted, _received(self._stream.get_extra_info("socket")))
        self._traffic.count(down=came - self._counted)
        self._counted = came


def _received(connection: Any) -> int:
    """Return the bytes that came over a connection, as far as the system tells; 0 if it does not."""
    kind = getattr(socket, "TCP_INFO", None)
    if kind is not None and isinstance(connection, socket.socket):
        with contextlib.suppress(OSError):
            told = connection.getsockopt(socket.IPPROTO_TCP, kind, _RECEIVED_AT + _RECEIVED.size)
            if len(told) == _RECEIVED_AT + _RECEIVED.size:
                return int(_RECEIVED.unpack_from(told, _RECEIVED_AT)[0])
    return 0
