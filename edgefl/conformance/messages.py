"""What passes between the suite and a client: requests as they came, and answers as a situation wants them sent.

An answer may be wrong on purpose: half a body, another length, a connection that ends in the middle. The server sends
it as it is written here; situations read what was exchanged.
"""

import re
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from edgefl.errors import EdgeFLError
from edgefl.wire import byte_shuffle

__all__ = ["Exchange", "Route", "ScriptedAnswer"]

_GZIP = zlib.MAX_WBITS | 16
_ROUTES = (
    ("enrol", "POST", r"/v1/devices"),
    ("poll", "POST", r"/v1/tasks/next"),
    ("artifact", "GET", r"/v1/artifacts/(?P<name>[^/]+)"),
    ("result", "PUT", r"/v1/tasks/(?P<name>[^/]+)/result"),
    ("refusal", "PUT", r"/v1/tasks/(?P<name>[^/]+)/refusal"),
    ("sample", "GET", r"/v1/sample"),
    ("profile", "PUT", r"/v1/devices/me/profile"),
    ("capabilities", "PUT", r"/v1/devices/me/capabilities"),
    ("samples", "PUT", r"/v1/devices/me/samples"),
    ("side", "GET", r"/v1/(?:pins|measurement(?:/(?P<name>[^/]+))?|speed)"),
    ("side", "POST", r"/v1/speed"),
)


class Route(StrEnum):
    """What a request is about."""

    ENROL = "enrol"
    POLL = "poll"
    ARTIFACT = "artifact"
    RESULT = "result"
    REFUSAL = "refusal"
    SAMPLE = "sample"
    PROFILE = "profile"
    CAPABILITIES = "capabilities"
    SAMPLES = "samples"
    SIDE = "side"
    """A route of the protocol that no situation asks for."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedAnswer:
    """An answer, and everything that is to go wrong with it."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    repeats: int = 1
    """How often the body is sent, one after the other, as one body."""
    cut_after: int | None = None
    """Bytes of the body after which the connection ends; its length is promised in full."""
    is_chunked: bool = False
    """Send it in chunks, without a length."""
    no_answer: bool = False
    """Reset the connection, and send nothing."""
    hold_seconds: float = 0.0
    """Seconds to wait before it is sent."""
    then: Callable[[], None] | None = None
    """Called after it was sent."""


@dataclass(slots=True, eq=False)
class Exchange:
    """A request, and what became of it."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    connection: int
    is_elsewhere: bool = False
    """Whether it came to the other origin, where a redirect leads."""
    arrived: float = field(default_factory=time.monotonic)
    """When its head was complete."""
    body: bytes = b""
    """As it was sent; not complete if the connection was cut in the middle."""
    is_complete: bool = False
    read_at_most: int | None = None
    """Bytes of the body after which the connection is reset; set before the body is read."""
    answer: ScriptedAnswer | None = None
    answered: float | None = None
    """When the answer was sent."""
    sent_bytes: int = 0
    """Bytes of the answer's body that the connection took."""

    @property
    def route(self) -> Route:
        """What it is about."""
        return Route(self._matched[0])

    @property
    def name(self) -> str:
        """The digest or the task in its path."""
        return self._matched[1]

    @property
    def _matched(self) -> tuple[str, str]:
        for route, method, pattern in _ROUTES:
            found = re.fullmatch(pattern, self.path)
            if found is not None and method == self.method:
                return route, found.groupdict().get("name") or ""
        return Route.UNKNOWN, ""

    @property
    def secret(self) -> str | None:
        """The key or token that it carries."""
        scheme, _, secret = self.headers.get("authorization", "").partition(" ")
        return secret.strip() if scheme.lower() == "bearer" else None

    @property
    def status(self) -> int | None:
        """The status of the answer; None if none was sent."""
        return None if self.answer is None or self.answer.no_answer else self.answer.status

    @property
    def codings(self) -> list[str]:
        """How its body is compressed."""
        return byte_shuffle.codings_in(self.headers.get("content-encoding", ""))

    @property
    def content(self) -> bytes | None:
        """Its body uncompressed; None if that is not possible."""
        try:
            if not self.codings:
                return self.body
            if self.codings == byte_shuffle.codings_in(byte_shuffle.CODINGS):
                return byte_shuffle.unpack(self.body)
            return zlib.decompress(self.body, _GZIP) if self.codings == ["gzip"] else None
        except (zlib.error, EdgeFLError):
            return None

    @property
    def start(self) -> int | None:
        """The first byte that it asks for; None if it asks for everything."""
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range", "").replace(" ", ""))
        return None if found is None else int(found[1])
