"""Measures the network speed to the coordinator.

    GET  URL/v1/speed?bytes=N     the coordinator answers with N bytes
    POST URL/v1/speed             the coordinator reads and discards N bytes

N grows until a transfer takes about a second, because a short one measures the round trip. The bytes are random, since
something on the way may compress. The clock runs from the request to its last byte, as it does for a model. Of an
answer that has more bytes than were asked for, or takes longer than a few seconds, no more is received.
"""

import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from device_runtime.agent.traffic import Traffic
from device_runtime.telemetry.clock import Clock, now
from edgefl.errors import EdgeFLError, MissingDependencyError

__all__ = ["Speed", "measure_speed"]

SMALLEST_BYTES, LARGEST_BYTES = 64 * 1024, 8 * 1024 * 1024
_GROWTH = 4
_ENOUGH_SECONDS = 0.5
_LONGEST_SECONDS = 10.0
_OVERHEAD_BYTES = 64 * 1024
"""Bytes of a transfer beside those that are measured, at the most."""
_PATH = "/v1/speed"


@dataclass(frozen=True, slots=True)
class Speed:
    """Bytes per second in both directions."""

    download: float
    upload: float


def measure_speed(url: str, key: str | None = None, *, tls: ssl.SSLContext | None = None, clock: Clock = now) -> Speed:
    """Measure the network to a coordinator; the key is a join key or a token, and `tls` says whom to trust."""
    try:
        import httpcore
        import httpx
    except ImportError:
        raise MissingDependencyError("httpx", action="Measuring the network", extra="device") from None
    from device_runtime.agent.metered_network import MeteredNetwork, open_connections

    traffic = Traffic()
    network = MeteredNetwork(traffic)
    network.reply_seconds = _LONGEST_SECONDS
    try:
        address = httpx.URL(url.rstrip("/"))
        if address.scheme not in ("http", "https") or not address.host:
            raise ValueError("it does not begin with http:// or https://")
        with open_connections(address, tls, network) as connections:
            line = _Line(connections, address, key, traffic)
            return Speed(_rate(line.download, clock), _rate(line.upload, clock))
    except (httpx.InvalidURL, ValueError) as error:
        raise EdgeFLError(
            f"{url!r} is not an address: {error}", fix="Write for example http://192.168.1.2:8000."
        ) from None
    except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, OSError) as error:
        raise EdgeFLError(
            f"the coordinator at {url} does not answer: {type(error).__name__}",
            fix="Check the address, and that the coordinator runs there.",
        ) from None


def _rate(transfer: Callable[[int], None], clock: Clock) -> float:
    """Return the bytes per second of the largest transfer that was needed."""
    size = SMALLEST_BYTES
    while True:
        began = clock()
        transfer(size)
        seconds = max(clock() - began, 1e-6)
        if seconds >= _ENOUGH_SECONDS or size >= LARGEST_BYTES:
            return size / seconds
        # Aim for a second at the rate just measured, but grow by a small factor only: the rate may be an outlier.
        size = min(LARGEST_BYTES, _GROWTH * size, max(2 * size, int(size / seconds)))


@dataclass(frozen=True, slots=True)
class _Line:
    """The connection to a coordinator."""

    connections: Any
    address: Any
    key: str | None
    traffic: Traffic

    def download(self, size: int) -> None:
        """Receive some bytes."""
        received = 0
        with self._asked("GET", f"{_PATH}?bytes={size}", size) as pieces:
            for piece in pieces:
                received += len(piece)
                if received > size:
                    break
        if received != size:
            raise EdgeFLError(
                f"the coordinator sent {received:,} bytes instead of {size:,}",
                fix="Check that the address is a coordinator's, and that nothing in between changes what it sends.",
            )

    def upload(self, size: int) -> None:
        """Send some bytes."""
        with self._asked("POST", _PATH, size, os.urandom(size)) as pieces:
            for _ in pieces:  # an answer without content; the connection can be used again
                pass

    @contextmanager
    def _asked(self, method: str, path: str, size: int, content: bytes | None = None) -> Iterator[Iterator[bytes]]:
        headers = {"Host": self.address.netloc.decode("ascii"), "Accept-Encoding": "identity"}
        if self.key is not None:
            headers["Authorization"] = f"Bearer {self.key}"
        if content is not None:
            headers |= {"Content-Type": "application/octet-stream", "Content-Length": str(len(content))}
        self.traffic.most = self.traffic.total + size + _OVERHEAD_BYTES
        times = {"timeout": dict.fromkeys(("connect", "read", "write"), _LONGEST_SECONDS)}
        target = f"{self.address}{path}"
        with self.connections.stream(
            method, target, headers=list(headers.items()), content=content, extensions=times
        ) as answer:
            _check(answer.status, target)
            yield answer.iter_stream()


def _check(status: int, target: str) -> None:
    if status in (401, 403):
        raise EdgeFLError(f"the coordinator refuses the key (HTTP {status})", fix="Give its join key with --key.")
    if status == 404:
        raise EdgeFLError(
            f"{target} does not exist (HTTP 404)", fix="Give the address of an EdgeFL coordinator, without a path."
        )
    if not 200 <= status < 300:
        raise EdgeFLError(f"the coordinator answered with HTTP {status}", fix="Look at the coordinator's own log.")
