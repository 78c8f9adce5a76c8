"""The transport interface, and HTTP: how requests reach a coordinator.

A transport sends one request and returns its reply, whatever the status; the client decides what a status means. Any
failure to receive a complete reply is an `UnreachableError`. Tests use other transports: one calls a function in the
same process, and one fails on purpose.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from device_runtime.agent.compression import accepts_byte_shuffle, compressed, decompressed
from edgefl import __version__
from edgefl.errors import EdgeFLError, MissingDependencyError, WireFormatError
from edgefl.wire import byte_shuffle

if TYPE_CHECKING:
    import httpx

__all__ = ["BODY", "GarbledError", "HttpTransport", "Reply", "Request", "Sink", "Transport", "UnreachableError"]

Sink = Callable[[int, bytes, int], None]
"""Takes the pieces of a body as they arrive: the status of the reply, a piece, and the number of bytes received for it.
For a compressed body, bytes may arrive before there is a piece of it."""

BODY = "application/vnd.safetensors"
"""The content type of bodies with tensors."""

_CONNECT_SECONDS = 10.0
_LARGEST_REPLY = 4 * 2**20
"""Bytes of a reply that is not a download: plans and receipts are a few kilobytes."""
_IDLE_SECONDS = 60.0
"""Seconds without data until a request counts as lost; a long poll is answered well before."""

_MOST_UNCOMPRESSED_PATHS = 256
_PIECE = 256 * 1024
"""Bytes passed to the HTTP client at once: of a large buffer it would copy the rest after each send."""


class UnreachableError(EdgeFLError):
    """No complete reply arrived: no connection, a reset, a timeout, or a truncated body."""


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
    """HTTP or HTTPS to one coordinator, over persistent connections."""

    def __init__(self, url: str, *, certificate: str | None = None) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingDependencyError("httpx", action="Talking to a coordinator", extra="device") from None
        import ssl

        if not url.startswith(("http://", "https://")):
            raise EdgeFLError(
                f"{url!r} is not the address of a coordinator", fix="Write for example https://10.0.0.5:8443."
            )
        verify: ssl.SSLContext | bool = True
        if certificate is not None:
            try:
                verify = ssl.create_default_context(cafile=certificate)
            except OSError as error:
                raise EdgeFLError(
                    f"the certificate {certificate} cannot be used: {error}", fix="Give a certificate in PEM form."
                ) from None
        self._httpx = httpx
        try:
            httpx.URL(url)
        except (httpx.InvalidURL, ValueError):
            raise EdgeFLError(f"{url!r} is not an address", fix="Write for example https://10.0.0.5:8443.") from None
        self._client = httpx.Client(
            base_url=url.rstrip("/"),
            verify=verify,
            timeout=httpx.Timeout(_IDLE_SECONDS, connect=_CONNECT_SECONDS),
            headers={"User-Agent": f"edgefl/{__version__}"},
        )
        for name in ("Accept", "Connection"):  # httpx sends these although they are the defaults
            del self._client.headers[name]
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
        if reply.status == 200 and "accept-encoding" in reply.headers:
            self._accepts_byte_shuffle = accepts_byte_shuffle(reply.headers["accept-encoding"])
        return reply

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _sent(self, request: Request, sink: Sink | None, body: bytes, coding: str) -> Reply:
        headers = self._headers(request, len(body), coding, is_download=sink is not None)
        guarded = None if sink is None else _Guarded(sink)
        try:
            asked = self._client.build_request(request.method, request.path, content=_content(body), headers=headers)
            answer = self._client.send(asked, stream=True)
            try:
                said = self._read(answer, guarded)
            finally:
                answer.close()
        except WireFormatError as error:
            self._disable_compression(request)
            raise GarbledError(f"the coordinator's reply is damaged: {error.problem}", fix="Ask again.") from None
        except (self._httpx.HTTPError, self._httpx.StreamError, self._httpx.InvalidURL, OSError, ValueError) as error:
            if guarded is not None and guarded.error is not None:
                raise guarded.error from None
            if guarded is not None:
                self._disable_compression(request)
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise UnreachableError(
                    "the coordinator's certificate is not trusted",
                    fix="Give the certificate that signed it with --certificate, and use the name it was issued for.",
                ) from None
            raise UnreachableError(
                f"the coordinator cannot be reached: {type(error).__name__}", fix="Check the address and the network."
            ) from None
        up = _size(asked.headers.raw) + len(body) + len(request.method) + len(request.path) + 12
        down = _size(answer.headers.raw) + answer.num_bytes_downloaded + 17
        return Reply(answer.status_code, dict(answer.headers.items()), said, down, up)

    def _headers(self, request: Request, size: int, coding: str, *, is_download: bool) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {request.token}"} if request.token else {}
        if request.body:
            headers["Content-Type"] = request.kind
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

    @staticmethod
    def _read(answer: "httpx.Response", sink: Sink | None) -> bytes:
        status, coding = answer.status_code, answer.headers.get("content-encoding")
        if sink is not None and status in (200, 206):
            for piece in decompressed(_raw_pieces(answer, sink), coding):
                sink(status, piece, 0)
            return b""
        body = b""
        for piece in decompressed(answer.iter_raw(), coding):
            body += piece
            if len(body) > _LARGEST_REPLY:
                raise ValueError("the reply is too large")
        return body


def _content(body: bytes) -> bytes | Iterator[bytes] | None:
    if len(body) <= _PIECE:
        return body or None
    whole = memoryview(body)
    return (bytes(whole[begin : begin + _PIECE]) for begin in range(0, len(body), _PIECE))


def _raw_pieces(answer: "httpx.Response", sink: Sink) -> Iterator[bytes]:
    """Yield the raw pieces of a reply, and report the size of each to the sink."""
    for piece in answer.iter_raw():
        sink(answer.status_code, b"", len(piece))
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


def _size(headers: list[tuple[bytes, bytes]]) -> int:
    return 2 + sum(len(name) + len(value) + 4 for name, value in headers)
