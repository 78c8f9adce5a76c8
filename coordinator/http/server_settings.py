"""What one coordinator process is told: where it keeps things, where it listens, what it lets through.

Made by `edgefl serve` from its options; read by `coordinator.http.server` and `coordinator.http.app`. What a federation
is told is elsewhere (`edgefl.federation.settings`). Plain values that check themselves: no files are opened here.
"""

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from edgefl.errors import EdgeFLError

__all__ = ["ServerLimits", "ServerSettings", "is_loopback"]

_MIB = 2**20
_MOST_WORKERS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What callers may do to this process, so that none of them can use it up."""

    json_bytes: int = _MIB
    """Size of a JSON body."""
    upload_bytes: int = 1024 * _MIB
    """Size of an update, unpacked. A federation may set less."""
    bundle_bytes: int = 4096 * _MIB
    """Size of a bundle."""
    header_bytes: int = 16 * 1024
    """Size of all headers of a request, its first line included."""
    header_seconds: float = 20.0
    """Time until the headers of a request are there."""
    body_seconds: float = 20.0
    """Time in which a part of a body must arrive, and after which `body_rate` is asked for."""
    body_rate: float = 1024.0
    """Bytes a second that a body must come with, on the average since it began."""
    kept_bytes: int = _MIB
    """Bodies up to this size are kept in memory; larger ones go to a file as they come."""
    memory_bytes: int = 16 * _MIB
    """Bytes of bodies in memory at the same time. Further uploads wait: the network slows the sender down."""
    spool_bytes: int = 16 * 1024 * _MIB
    """Bytes of bodies in files at the same time."""
    room_seconds: float = 10.0
    """How long an upload waits for room before it is told to come again."""
    open_polls: int = 20_000
    """Devices that wait at the same time."""
    requests_rate: float = 20.0
    """Requests a second of one device, on the average."""
    requests_burst: int = 100
    """Requests of one device at once."""
    joins_rate: float = 200.0
    """Requests a second with one join key, on the average: a whole fleet may come with one."""
    joins_burst: int = 2000
    uploads_at_once: int = 2
    """Uploads of one device at the same time: one, and its repetition after a connection that was lost."""
    failures_rate: float = 1.0
    """Unknown tokens a second from one address, on the average, before they are not even looked up."""
    failures_burst: int = 30
    speed_bytes: int = 64 * _MIB
    """Size of a transfer that measures the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """One coordinator process."""

    state: Path
    """The folder of everything that it keeps, unless `database` or `blobs` say otherwise."""
    database: str | None = None
    """URL of the database, such as 'postgresql://...'; None is a SQLite file in `state`."""
    blobs: str | None = None
    """URL of the blob store, such as 's3://bucket/folder'; None is a folder in `state`."""
    host: str = "127.0.0.1"
    port: int = 8000
    """0 is a free one."""
    certificate: Path | None = None
    """PEM file of the certificate and those that vouch for it."""
    private_key: Path | None = None
    """PEM file of its key; None if it is in the certificate's file."""
    insecure_public: bool = False
    """Listen to other machines without TLS: tokens and models are then readable on the way."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses of reverse proxies whose X-Forwarded-For is believed."""
    admin_token: str | None = field(default=None, repr=False)
    """The operator's secret; None is the one in the file `admin-token` of `state`, made if there is none."""
    viewer_token: str | None = field(default=None, repr=False)
    """The secret of who may only look; None is the one in the file `viewer-token`, made if there is none."""
    log_format: Literal["text", "json"] = "text"
    log_level: str = "info"
    limits: ServerLimits = field(default_factory=ServerLimits)
    workers: int = 1
    """Processes that serve on the one port."""

    def __post_init__(self) -> None:
        if not 1 <= self.workers <= _MOST_WORKERS:
            raise EdgeFLError(f"{self.workers} is no number of workers", fix=f"Write one of 1 to {_MOST_WORKERS}.")
        if not 0 <= self.port <= 65535:
            raise EdgeFLError(f"{self.port} is no port", fix="Write one of 1 to 65535, or 0 for a free one.")
        if self.log_format not in ("text", "json"):
            raise EdgeFLError(f"{self.log_format!r} is no form of a log", fix="Write text or json.")
        if self.log_level.lower() not in ("debug", "info", "warning", "error"):
            raise EdgeFLError(f"{self.log_level!r} is no level of a log", fix="Write debug, info, warning or error.")
        if self.private_key is not None and self.certificate is None:
            raise EdgeFLError("there is a private key without a certificate", fix="Give its certificate too.")
        for role, token in (("admin", self.admin_token), ("viewer", self.viewer_token)):
            if token is not None and (len(token) < 32 or not _is_sendable(token)):
                raise EdgeFLError(
                    f"the {role} token is too short, or has characters that no header can carry",
                    fix="Give at least 32 letters and digits, or none: then one is made.",
                )
        if self.certificate is None and not self.insecure_public and not is_loopback(self.host):
            raise EdgeFLError(
                f"{self.host} can be reached by other machines, and there is no certificate",
                fix="Give a certificate and its private key, listen on 127.0.0.1 behind a proxy that speaks TLS, "
                "or allow it with --insecure-public: tokens and models are then readable on the way.",
            )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address to listen on."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_sendable(token: str) -> bool:
    return token.isascii() and token.isprintable() and " " not in token
