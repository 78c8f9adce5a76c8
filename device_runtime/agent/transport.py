"""The transport interface, and HTTP: how requests reach a coordinator.

A transport sends one request and returns its reply, whatever the status; the client decides what a status means. Any
failure to receive a complete reply is an `UnreachableError`. Tests use other transports: one calls a function in the
same process, and one fails on purpose.
"""

import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from device_runtime.agent.compression import accepts_byte_shuffle, compressed, decompressed
from device_runtime.agent.traffic import Traffic
from edgefl import __version__
from edgefl.errors import EdgeFLError, MissingDependencyError, WireFormatError
from edgefl.pinned_tls import WrongPinError
from edgefl.wire import byte_shuffle

__all__ = [
    "BODY",
    "GarbledError",
    "HttpTransport",
    "Reply",
    "Request",
    "Sink",
    "Transport",
    "UnreachableError",
    "WrongServerError",
]

Sink = Callable[[int, bytes, int], None]
"""Takes the pieces of a body as they arrive: the status of the reply, a piece, and the number of bytes received for it.
For a compressed body, bytes may arrive before there is a piece of it."""

BODY = "application/vnd.safetensors"
"""The content type of bodies with tensors."""

_POLL = "/v1/tasks/next"
"""The request whose reply says how results may be compressed."""
_CONNECT_SECONDS = 10.0
_LARGEST_REPLY = 256 * 1024
"""Bytes of a reply that is not a download, packed and unpacked: plans and receipts are a few kilobytes."""
_LARGEST_ANSWER = 4 * _LARGEST_REPLY
"""Bytes of such a reply with everything around it, and of what comes before the body of a download."""
_WAITING_BYTES = 8 * 2**20
"""Bytes that the system may have received before they are read."""
_REPLY_SECONDS = 120.0
"""Seconds until a reply that is not a download is complete; a long poll is answered well before."""
_IDLE_SECONDS = 60.0
"""Seconds without data until a request counts as lost; a long poll is answered well before."""

_MOST_UNCOMPRESSED_PATHS = 256
_PIECE = 256 * 1024
"""Bytes passed to the HTTP client at once: of a large buffer it would copy the rest after each send."""


class UnreachableError(EdgeFLError):
    """No complete reply arrived: no connection, a reset, a timeout, or a truncated body."""


class WrongServerError(UnreachableError):
    """Somebody else answered than the coordinator that was paired: the key is not pinned. Nothing was sent."""


class GarbledError(UnreachableError):
    """The reply cannot be decompressed."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the agent."""

    method: str
    path: str
    """From the coordinator's root, such as '/v1/tasks/next?wait=20'."""
    token: str | None = None
    body: bytes = b""
    kind: str = "application/json"
    """The content type of the body."""
    start: int = 0
    """The first byte wanted, for a resumed download."""
    reply_seconds: float | None = _REPLY_SECONDS
    """The most seconds from the end of the request to the end of its reply; None means no limit."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to a request."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""
    """Empty if a sink took it."""
    down_bytes: int = 0
    """Bytes received, including headers."""
    up_bytes: int = 0
    """Bytes sent, including headers but not the overhead of TLS."""


class Transport(Protocol):
    """Sends requests."""

    def send(self, request: Request, sink: Sink | None = None) -> Reply:
        """Return the reply. If a sink is given, the body of a 200 or 206 goes there as it arrives."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


class HttpTransport:
    """HTTP or HTTPS to one coordinator, over persistent connections.

    It follows no redirect, keeps no cookie, and takes no more of a reply than is of use. `tls` says whose certificate
    is trusted; without it, that is decided by the known authorities.
    """

    def __init__(self, url: str, *, tls: ssl.SSLContext | None = None, traffic: Traffic | None = None) -> None:
        try:
            import httpcore
            import httpx
        except ImportError:
            raise MissingDependencyError("httpx", action="Talking to a coordinator", extra="device") from None
        from device_runtime.agent.metered_network import MeteredNetwork, open_connections

        if not url.startswith(("http://", "https://")):
            raise EdgeFLError(
                f"{url!r} is not the address of a coordinator", fix="Write for example https://10.0.0.5:8443."
            )
        try:
            self._url = httpx.URL(url.rstrip("/"))
        except (httpx.InvalidURL, ValueError):
            raise EdgeFLError(f"{url!r} is not an address", fix="Write for example https://10.0.0.5:8443.") from None
        self._failures: tuple[type[Exception], ...] = (
            httpcore.TimeoutException,
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.ProxyError,
            OSError,
            ValueError,
        )
        self.traffic = Traffic() if traffic is None else traffic
        """Everything that was received and sent, counted at the socket."""
        self._network = MeteredNetwork(self.traffic)
        self._connections = open_connections(self._url, tls, self._network)
        self._accepts_byte_shuffle = False
        """Whether the coordinator accepts byte-shuffled bodies."""
        self._uncompressed_paths: set[str] = set()
        """Paths whose replies are requested without compression."""

    def send(self, request: Request, sink: Sink | None = None) -> Reply:
        """Send one request. If the coordinator no longer accepts the compression of its body, send it again without."""
        if request.token and not (request.token.isascii() and request.token.isprintable()):
            raise EdgeFLError("the key or token has invalid characters", fix="Copy it again, without line breaks.")
        body, coding = compressed(request.body, byte_shuffled=self._accepts_byte_shuffle and request.kind == BODY)
        reply = self._sent(request, sink, body, coding)
        if reply.status == 415 and coding:
            self._accepts_byte_shuffle = False
            again = self._sent(request, sink, request.body, "")
            down, up = reply.down_bytes + again.down_bytes, reply.up_bytes + again.up_bytes
            return replace(again, down_bytes=down, up_bytes=up)
        if reply.status == 200 and request.path.startswith(_POLL):
            self._accepts_byte_shuffle = accepts_byte_shuffle(reply.headers.get("accept-encoding"))
        return reply

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def _sent(self, request: Request, sink: Sink | None, body: bytes, coding: str) -> Reply:
        self.traffic.check(len(body) + 1)
        headers = self._headers(request, len(body), coding, is_download=sink is not None)
        guarded = None if sink is None else _Guarded(sink)
        down, up = self.traffic.down, self.traffic.up
        self._network.reply_seconds, self._network.reply_bytes = request.reply_seconds, _LARGEST_ANSWER
        target = f"{self._url}{request.path}"
        timeouts = {"timeout": {"connect": _CONNECT_SECONDS, "read": _IDLE_SECONDS, "write": _IDLE_SECONDS}}
        try:
            with self._connections.stream(
                request.method, target, headers=list(headers.items()), content=_content(body), extensions=timeouts
            ) as answer:
                if guarded is not None and answer.status in (200, 206):
                    self._network.reply_bytes = None
                found = {_text(name).lower(): _text(value) for name, value in answer.headers}
                said = self._read(answer.status, found.get("content-encoding"), answer.iter_stream(), guarded)
        except WireFormatError as error:
            self._disable_compression(request)
            raise GarbledError(f"the coordinator's reply is damaged: {error.problem}", fix="Ask again.") from None
        except WrongPinError as error:
            raise WrongServerError(error.problem, fix=error.fix) from None
        except self._failures as error:
            if guarded is not None and guarded.error is not None:
                raise guarded.error from None
            if guarded is not None:
                self._disable_compression(request)
            raise _unreachable(error) from None
        return Reply(answer.status, found, said, self.traffic.down - down, self.traffic.up - up)

    def _headers(self, request: Request, size: int, coding: str, *, is_download: bool) -> dict[str, str]:
        headers = {"Host": self._url.netloc.decode("ascii"), "User-Agent": f"edgefl/{__version__}"}
        if request.token:
            headers["Authorization"] = f"Bearer {request.token}"
        if request.body:
            headers["Content-Type"] = request.kind
        if request.body or request.method != "GET":
            headers["Content-Length"] = str(size)  # otherwise pieces would be sent as chunks
        if coding:
            headers["Content-Encoding"] = coding
        if request.start:
            headers["Range"] = f"bytes={request.start}-"
        if request.start or request.path in self._uncompressed_paths:
            return headers | {"Accept-Encoding": "identity"}
        return headers | {"Accept-Encoding": byte_shuffle.CODINGS if is_download else "gzip"}

    def _disable_compression(self, request: Request) -> None:
        """Request this reply without compression from now on, since it broke off or could not be decompressed: half of
        a byte-shuffled body is useless, whereas an uncompressed one can be resumed."""
        if len(self._uncompressed_paths) >= _MOST_UNCOMPRESSED_PATHS:
            self._uncompressed_paths.clear()
        self._uncompressed_paths.add(request.path)

    def _reported(self, pieces: Iterable[bytes], status: int, sink: Sink) -> Iterator[bytes]:
        """Yield the raw pieces of a download, and report the size of each to the sink."""
        before, size = self.traffic.down, 0
        for piece in pieces:
            size += len(piece)
            if self.traffic.down - before > 2 * size + _LARGEST_ANSWER + _WAITING_BYTES:
                raise WireFormatError("it has far more around its content than content", fix="Ask again.")
            sink(status, b"", len(piece))
            yield piece

    def _read(self, status: int, coding: str | None, pieces: Iterable[bytes], sink: Sink | None) -> bytes:
        if sink is not None and status in (200, 206):
            for piece in decompressed(self._reported(pieces, status, sink), coding):
                sink(status, piece, 0)
            return b""
        body = b""
        for piece in decompressed(_limited(pieces), coding):
            body += piece
            if len(body) > _LARGEST_REPLY:
                raise WireFormatError(f"it has more than {_LARGEST_REPLY:,} bytes", fix="Ask again.")
        return body


def _content(body: bytes) -> bytes | Iterator[bytes] | None:
    if len(body) <= _PIECE:
        return body or None
    whole = memoryview(body)
    return (bytes(whole[begin : begin + _PIECE]) for begin in range(0, len(body), _PIECE))


def _limited(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the raw pieces of a reply that is not a download, up to the limit of such a reply."""
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > _LARGEST_REPLY:
            raise WireFormatError(f"it has more than {_LARGEST_REPLY:,} bytes", fix="Ask again.")
        yield piece


class _Guarded:
    """A sink whose own errors, above all a full disk, are told apart from those of the network."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.error: Exception | None = None

    def __call__(self, status: int, piece: bytes, came: int) -> None:
        try:
            self._sink(status, piece, came)
        except Exception as error:
            self.error = error
            raise OSError from error


def _unreachable(error: Exception) -> UnreachableError:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return UnreachableError(
            "the coordinator's certificate is not trusted",
            fix="Join with the coordinator's pairing code, which names its key; or give the certificate that signed it "
            "with --certificate, and use the name it was issued for.",
        )
    return UnreachableError(
        f"the coordinator cannot be reached: {type(error).__name__}", fix="Check the address and the network."
    )


def _text(header: bytes) -> str:
    return header.decode("latin-1")
