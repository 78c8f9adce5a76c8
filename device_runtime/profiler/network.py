"""Measures the network speed to the coordinator.

    GET  URL/v1/speed?bytes=N     the coordinator answers with N bytes
    POST URL/v1/speed             the coordinator reads and discards N bytes

N grows until a transfer takes about a second, because a short one measures the round trip. The bytes are random, since
something on the way may compress. The clock runs from the request to its last byte, as it does for a model.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from device_runtime.telemetry.clock import Clock, now
from edgefl.errors import EdgeFLError, MissingDependencyError

if TYPE_CHECKING:
    import httpx

__all__ = ["Speed", "measure_speed"]

SMALLEST_BYTES, LARGEST_BYTES = 64 * 1024, 8 * 1024 * 1024
_GROWTH = 4
_ENOUGH_SECONDS = 0.5
_LONGEST_SECONDS = 10.0
_PATH = "/v1/speed"


@dataclass(frozen=True, slots=True)
class Speed:
    """Bytes per second in both directions."""

    download: float
    upload: float


def measure_speed(url: str, key: str | None = None, *, clock: Clock = now) -> Speed:
    """Measure the network to a coordinator; the key is a join key or a token."""
    try:
        import httpx
    except ImportError:
        raise MissingDependencyError("httpx", action="Measuring the network", extra="device") from None
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    headers["Accept-Encoding"] = "identity"
    try:
        with httpx.Client(base_url=url.rstrip("/"), headers=headers, timeout=_LONGEST_SECONDS) as client:
            download = _rate(lambda size: _download(client, size), clock)
            return Speed(download, _rate(lambda size: _upload(client, size), clock))
    except (httpx.InvalidURL, httpx.UnsupportedProtocol, ValueError) as error:
        raise EdgeFLError(
            f"{url!r} is not an address: {error}", fix="Write for example http://192.168.1.2:8000."
        ) from None
    except httpx.HTTPError as error:
        raise EdgeFLError(
            f"the coordinator at {url} does not answer: {error or type(error).__name__}",
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


def _download(client: "httpx.Client", size: int) -> None:
    with client.stream("GET", _PATH, params={"bytes": size}) as answer:
        _check(answer)
        received = sum(len(piece) for piece in answer.iter_raw())
    if received != size:
        raise EdgeFLError(
            f"the coordinator sent {received:,} bytes instead of {size:,}",
            fix="Check that the address is a coordinator's, and that nothing in between changes what it sends.",
        )


def _upload(client: "httpx.Client", size: int) -> None:
    _check(client.post(_PATH, content=os.urandom(size), headers={"Content-Type": "application/octet-stream"}))


def _check(answer: "httpx.Response") -> None:
    if answer.status_code in (401, 403):
        raise EdgeFLError(
            f"the coordinator refuses the key (HTTP {answer.status_code})", fix="Give its join key with --key."
        )
    if answer.status_code == 404:
        raise EdgeFLError(
            f"{answer.url} does not exist (HTTP 404)", fix="Give the address of an EdgeFL coordinator, without a path."
        )
    if not answer.is_success:
        raise EdgeFLError(
            f"the coordinator answered with HTTP {answer.status_code}", fix="Look at the coordinator's own log."
        )
