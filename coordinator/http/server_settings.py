"""The settings of one coordinator process: its storage, address, tokens and limits.

`edgefl serve` builds them from its options. The settings of a federation are in `edgefl.federation.settings`. These are
plain values that check themselves: no files are opened here.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from coordinator.http.public_address import check_names
from edgefl.coordinator_url import is_loopback
from edgefl.errors import EdgeFLError
from edgefl.pins import check_pins

__all__ = ["ServerLimits", "ServerSettings"]

_KIB, _MIB = 2**10, 2**20
_MOST_WORKERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits on callers, so that none of them can exhaust this process."""

    json_bytes: int = 256 * _KIB
    """Size of the largest JSON body, the settings of a federation. All these sizes are decompressed ones."""
    document_bytes: int = 64 * _KIB
    """Size of a profile, an enrolment, or another request of an operator."""
    refusal_bytes: int = 4 * _KIB
    """Size of a refusal."""
    upload_bytes: int = 1024 * _MIB
    """Size of an update. A federation may set less, and no upload may be larger than its task's plan can need."""
    bundle_bytes: int = 4096 * _MIB
    """Size of a bundle."""
    program_bytes: int = 256 * _MIB
    """Size of a compiled program, which holds no weights."""
    header_bytes: int = 16 * _KIB
    """Size of all headers of a request, including its first line."""
    header_count: int = 100
    """Headers of a request."""
    query_count: int = 32
    """Parameters in the query of a request."""
    header_seconds: float = 20.0
    """Time in which the headers of a request must arrive."""
    body_seconds: float = 20.0
    """Time in which the next part of a body must arrive, and after which `body_rate` is enforced."""
    body_rate: float = 1024.0
    """Bytes per second at which a body must arrive, averaged since its start."""
    waiting_rate: float = 8 * 1024.0
    """Bytes per second at which a body must arrive while others wait for memory or disk."""
    kept_bytes: int = _MIB
    """Bodies up to this size stay in memory; larger ones go to a file as they arrive."""
    memory_bytes: int = 16 * _MIB
    """Bytes of bodies in memory at the same time. Further uploads wait: the network slows the sender down."""
    spool_bytes: int = 16 * 1024 * _MIB
    """Bytes of bodies in files at the same time."""
    room_seconds: float = 10.0
    """How long an upload waits for memory or disk before it is rejected with a 503."""
    connections: int | None = None
    """Connections of this process; None is most of the files that it may open."""
    address_connections: int = 4096
    """Connections from one address that have not shown a valid token."""
    device_connections: int = 8
    """Connections of one device. One more closes its oldest."""
    operator_connections: int = 128
    """Connections with one operator's token."""
    read_seconds: float = 20.0
    """Time after which a caller that does not read its response at `read_rate` is disconnected."""
    read_rate: float = 1024.0
    """Bytes per second at which a response must be read."""
    open_polls: int = 20_000
    """Devices that may wait at the same time."""
    requests_rate: float = 20.0
    """Requests per second of one device, on average."""
    requests_burst: int = 100
    """Requests of one device at once."""
    joins_rate: float = 200.0
    """Requests per second with one join key, on average: a whole fleet may use the same key."""
    joins_burst: int = 2000
    uploads_at_once: int = 2
    """Uploads of one device at the same time: one, and its repetition after a lost connection."""
    failures_rate: float = 1.0
    """Unknown tokens per second from one address, on average, before they are no longer looked up."""
    failures_burst: int = 30
    speed_bytes: int = 64 * _MIB
    """Size of a transfer that measures the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of one coordinator process."""

    state: Path
    """The folder for everything that it stores, unless `database` or `blobs` say otherwise."""
    database: str | None = None
    """URL of the database, such as 'postgresql://...'; None is a SQLite file in `state`."""
    blobs: str | None = None
    """URL of the blob store, such as 's3://bucket/folder'; None is a folder in `state`."""
    host: str = "127.0.0.1"
    port: int = 8000
    """0 is any free port."""
    certificate: Path | None = None
    """PEM file of the certificate chain."""
    private_key: Path | None = None
    """PEM file of its key; None if it is in the certificate's file."""
    tls: bool = False
    """Encrypt on 127.0.0.1 too. Elsewhere that is so without it."""
    public_names: tuple[str, ...] = ()
    """Names, addresses or URLs at which other machines reach this one; the first is in pairing codes."""
    public_url: str | None = None
    """The address in pairing codes; None until the port is known."""
    pins: tuple[str, ...] = ()
    """The keys that devices are told to trust; those of a certificate of its own are found at the start."""
    insecure_public: bool = False
    """Allow other machines to connect without TLS: tokens and models can then be read in transit."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses of reverse proxies whose X-Forwarded-For is trusted."""
    admin_token: str | None = field(default=None, repr=False)
    """The operator's secret; None uses the file `admin-token` in `state`, created if it is missing."""
    viewer_token: str | None = field(default=None, repr=False)
    """The viewer's secret; None uses the file `viewer-token`, created if it is missing."""
    log_format: Literal["text", "json"] = "text"
    log_level: str = "info"
    limits: ServerLimits = field(default_factory=ServerLimits)
    workers: int = 1
    """Processes that serve on the port."""
    metrics: Path | None = None
    """The folder in which the processes count what they do; the first one makes it."""

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= _MOST_WORKERS:
            raise EdgeFLError(
                f"{self.workers} is not a valid number of workers", fix=f"Give a number from 1 to {_MOST_WORKERS}."
            )
        if not 0 <= self.port <= 65535:
            raise EdgeFLError(
                f"{self.port} is not a valid port", fix="Give a port from 1 to 65535, or 0 for any free one."
            )
        if self.log_format not in ("text", "json"):
            raise EdgeFLError(f"{self.log_format!r} is not a log format", fix="Give text or json.")
        if self.log_level.lower() not in ("debug", "info", "warning", "error"):
            raise EdgeFLError(f"{self.log_level!r} is not a log level", fix="Give debug, info, warning or error.")
        if self.private_key is not None and self.certificate is None:
            raise EdgeFLError("there is a private key but no certificate", fix="Give its certificate too.")
        for role, token in (("admin", self.admin_token), ("viewer", self.viewer_token)):
            if token is not None and (len(token) < 32 or not _is_sendable(token)):
                raise EdgeFLError(
                    f"the {role} token is too short, or has characters that a header cannot carry",
                    fix="Give at least 32 letters and digits, or no token: then one is created.",
                )
        if self.insecure_public and (self.tls or self.certificate is not None):
            raise EdgeFLError("--insecure-public is for a coordinator without TLS", fix="Leave it out.")
        check_pins(self.pins)
        check_names(self.public_names)

    @property
    def makes_certificate(self) -> bool:
        """Whether the coordinator makes its own certificate: other machines can reach it, and none is given."""
        return self.certificate is None and not self.insecure_public and (self.tls or not is_loopback(self.host))


def _is_sendable(token: str) -> bool:
    return token.isascii() and token.isprintable() and " " not in token
