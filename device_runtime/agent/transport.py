"""How the agent's requests reach a coordinator: the seam, and HTTP.

A transport sends one request and returns its reply, whatever the status; what a status means is the client's business.
Anything that keeps a whole reply from arriving is an `UnreachableError`. Tests put other transports here: one that
calls a function in the same process, and one that breaks on purpose.
"""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from edgefl import __version__
from edgefl.errors import EdgeFLError, MissingDependencyError

if TYPE_CHECKING:
    import httpx

__all__ = ["HttpTransport", "Reply", "Request", "Sink", "Transport", "UnreachableError", "packed"]

Sink = Callable[[int, bytes], None]
"""Takes the pieces of a body as they arrive, each with the status of its reply."""

_CONNECT_SECONDS = 10.0
_LARGEST_REPLY = 4 * 2**20
"""Bytes of a reply that is not a download: plans and receipts are a few kilobytes."""
_IDLE_SECONDS = 60.0
"""How long nothing may arrive before a request counts as lost; a long poll is answered well before."""

_LARGEST_PACKED = 4 * 2**20
"""Bytes of a body that is tried to pack: of a large one it would take seconds on a small device, to save little."""
_SMALL = 64 * 1024
_PACKED_FRACTION = 0.9


class UnreachableError(EdgeFLError):
    """No whole reply came: no connection, a reset, a timeout, a body cut short."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the agent asks."""

    method: str
    path: str
    """From the coordinator's root, such as '/v1/tasks/next?wait=20'."""
    token: str | None = None
    body: bytes = b""
    kind: str = "application/json"
    """The content type of the body."""
    start: int = 0
    """The first byte that is wanted, of a download that goes on."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""
    """Empty where a sink took it."""
    down_bytes: int = 0
    """Bytes received, headers included."""
    up_bytes: int = 0
    """Bytes sent, headers included. What TLS adds is not seen here."""


class Transport(Protocol):
    """Sends requests."""

    def send(self, request: Request, sink: Sink | None = None) -> Reply:
        """Return the reply. Where a sink is given, the body of a 200 or 206 goes there as it arrives."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


class HttpTransport:
    """HTTP or HTTPS to one coordinator, over connections that are kept open."""

    def __init__(self, url: str, *, certificate: str | None = None) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingDependencyError("httpx", action="Talking to a coordinator", extra="device") from None
        import ssl

        if not url.startswith(("http://", "https://")):
            raise EdgeFLError(f"{url!r} is no address of a coordinator", fix="Write for example https://10.0.0.5:8443.")
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
            raise EdgeFLError(f"{url!r} is no address", fix="Write for example https://10.0.0.5:8443.") from None
        self._client = httpx.Client(
            base_url=url.rstrip("/"),
            verify=verify,
            timeout=httpx.Timeout(_IDLE_SECONDS, connect=_CONNECT_SECONDS),
            # Unpacked bodies could be any size, and a download could not go on at a byte.
            headers={"User-Agent": f"edgefl/{__version__}", "Accept-Encoding": "identity"},
        )

    def send(self, request: Request, sink: Sink | None = None) -> Reply:
        """Send one request."""
        if request.token and not (request.token.isascii() and request.token.isprintable()):
            raise EdgeFLError("the key or token has characters that none has", fix="Copy it again, without line ends.")
        headers = {"Authorization": f"Bearer {request.token}"} if request.token else {}
        body = packed(request.body)
        if request.body:
            headers["Content-Type"] = request.kind
        if body is not request.body:
            headers["Content-Encoding"] = "gzip"
        if request.start:
            headers["Range"] = f"bytes={request.start}-"
        guarded = None if sink is None else _Guarded(sink)
        try:
            asked = self._client.build_request(request.method, request.path, content=body or None, headers=headers)
            answer = self._client.send(asked, stream=True)
            try:
                said = self._read(answer, guarded)
            finally:
                answer.close()
        except (self._httpx.HTTPError, self._httpx.StreamError, self._httpx.InvalidURL, OSError, ValueError) as error:
            if guarded is not None and guarded.error is not None:
                raise guarded.error from None
            raise UnreachableError(
                f"the coordinator cannot be reached: {type(error).__name__}", fix="Check the address and the network."
            ) from None
        up = _size(asked.headers.raw) + len(body) + len(request.method) + len(request.path) + 12
        down = _size(answer.headers.raw) + answer.num_bytes_downloaded + 17
        return Reply(answer.status_code, dict(answer.headers.items()), said, down, up)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    @staticmethod
    def _read(answer: "httpx.Response", sink: Sink | None) -> bytes:
        if sink is not None and answer.status_code in (200, 206):
            for piece in answer.iter_raw():
                sink(answer.status_code, piece)
            return b""
        body = b""
        for piece in answer.iter_raw():
            body += piece
            if len(body) > _LARGEST_REPLY:
                raise ValueError("the reply is too large")
        return body


def packed(body: bytes) -> bytes:
    """Return a body packed with gzip where that saves something worth having, else as it is.

    Bits of masked noise are fewer ones than zeros, and no sequence of them comes twice: short codes for frequent bytes
    alone are faster and smaller there than a search for repetitions. In a small body the header counts, which is text.
    """
    if len(body) > _LARGEST_PACKED:
        return body
    strategies = [zlib.Z_HUFFMAN_ONLY, zlib.Z_DEFAULT_STRATEGY][: 2 if len(body) <= _SMALL else 1]
    smaller = min((_gzip(body, strategy) for strategy in strategies), key=len)
    return smaller if len(smaller) <= _PACKED_FRACTION * len(body) else body


def _gzip(body: bytes, strategy: int) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31, zlib.DEF_MEM_LEVEL, strategy)  # 31: with gzip's head, and no time
    return packer.compress(body) + packer.flush()


class _Guarded:
    """A sink whose own errors, a full disk above all, are told from those of the network."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.error: Exception | None = None

    def __call__(self, status: int, piece: bytes) -> None:
        try:
            self._sink(status, piece)
        except Exception as error:
            self.error = error
            raise OSError from error


def _size(headers: list[tuple[bytes, bytes]]) -> int:
    return 2 + sum(len(name) + len(value) + 4 for name, value in headers)
