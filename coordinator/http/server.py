"""One coordinator process: opens its storage, listens, and serves until it is stopped.

`edgefl serve` calls `serve`. SIGTERM or Ctrl-C answers every open poll at once, finishes the requests in progress, and
returns.
"""

import contextlib
import gc
import logging
import os
import resource
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType

import uvicorn
from fastapi import FastAPI

from coordinator.federations.lifecycle import create
from coordinator.federations.tokens import OperatorRole
from coordinator.http.allocator import give_back_large_memory
from coordinator.http.app import make_app
from coordinator.http.operator_tokens import StartToken, operator_tokens
from coordinator.http.own_certificate import own_certificate
from coordinator.http.protocol import protocol_class
from coordinator.http.public_address import PublicAddress, machine_names, public_url
from coordinator.http.server_settings import ServerSettings
from coordinator.http.services import Services
from coordinator.http.tls import restricted, short_handshakes
from coordinator.http.workers import beside
from coordinator.observability.logs import configure
from coordinator.observability.shared_counters import counters_folder
from coordinator.rounds.context import Context
from coordinator.storage.open import blobs_folder, database_file, open_blobs, open_store
from coordinator.storage.private_files import check_own_folder, private_umask, tighten, tighten_tree
from coordinator.storage.records import COORDINATOR, AuditEvent
from coordinator.storage.tls_keys import FOLDER
from edgefl import __version__
from edgefl.errors import EdgeFLError
from edgefl.federation.settings import FederationSettings
from edgefl.pins import PINS_FILE, check_pins

__all__ = ["Listening", "CoordinatorServer", "listen", "make_server", "serve", "serve_beside"]

_log = logging.getLogger("coordinator.http.server")

_GRACE_SECONDS = 4
_KEEP_ALIVE_SECONDS = 75
"""Longer than a device waits between two polls, so that it keeps its connection."""
_MOST_FILES = 65_536
_SWITCH_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a coordinator listens, and the tokens of its operators."""

    url: str
    context: Context
    address: PublicAddress
    """The address in pairing codes."""
    tokens: Mapping[OperatorRole, StartToken] = field(repr=False)
    created: tuple[tuple[str, bool], ...] = ()
    """The federations that it was started with, and whether each is new."""


def serve(
    settings: ServerSettings,
    *,
    federations: Sequence[tuple[FederationSettings, bytes]] = (),
    ready: Callable[[Listening], None] | None = None,
) -> None:
    """Serve until SIGTERM or Ctrl-C. `federations` are created first, from settings and bundles; `ready` is called once
    requests are answered, on a thread of the server."""
    with _process(settings) as stack:
        _close_to_others(settings)
        settings = replace(settings, metrics=stack.enter_context(counters_folder(settings.state)))
        context, tokens, local = _open(settings, stack)
        sock = stack.enter_context(listen(settings.host, settings.port))
        settings = _reachable(settings, sock)
        url = f"{'http' if settings.certificate is None else 'https'}://{_address(sock)}"
        stack.enter_context(_audited(settings, context, url))
        created = tuple((one.name, create(context, one, bundle)[1]) for one, bundle in federations)
        app = _app(settings, context, local)
        server = make_server(app, settings)
        if ready is not None:
            listening = Listening(url, context, _public_address(settings), tokens, created)
            server.on_start = lambda: ready(listening)
        stack.enter_context(beside(settings, sock, app.state.services.metrics.fold))
        _log.info("listening on %s", url)
        _run(server, sock)


def serve_beside(settings: ServerSettings, sock: socket.socket, over: threading.Event) -> None:
    """Serve as a further worker, on a socket that another process listens on, until `over` is set."""
    with _process(settings) as stack:
        context, _, local = _open(settings, stack)
        server = make_server(_app(settings, context, local), settings)

        def stop_at_the_end() -> None:
            over.wait()
            server.should_exit = True

        threading.Thread(target=stop_at_the_end, name="stop", daemon=True).start()
        _run(server, sock)


def _reachable(settings: ServerSettings, sock: socket.socket) -> ServerSettings:
    """Return the settings with the address for devices, and with the coordinator's own certificate if it needs one.

    Further workers get both from here, so all of them use the same key.
    """
    if settings.makes_certificate:
        own = own_certificate(settings.state, machine_names(settings.public_names, settings.host))
        # Further pins are of the certificate that will follow this one.
        pins = check_pins(dict.fromkeys((*own.pins, *settings.pins)))
        settings = replace(settings, certificate=own.certificate, private_key=own.private_key, pins=pins)
    else:
        (settings.state / PINS_FILE).unlink(missing_ok=True)  # of a certificate that is not used any more
    is_encrypted = settings.certificate is not None
    url = public_url(settings.public_names, settings.host, sock.getsockname()[1], tls=is_encrypted)
    return replace(settings, public_url=url)


@contextlib.contextmanager
def _process(settings: ServerSettings) -> Iterator[contextlib.ExitStack]:
    """Prepare this process for serving."""
    handler = configure(settings.log_format, settings.log_level)
    try:
        _allow_many_files()
        give_back_large_memory()
        # The event loop releases the interpreter at every system call, and must soon get it back from busy threads.
        sys.setswitchinterval(_SWITCH_SECONDS)
        with private_umask(), contextlib.ExitStack() as stack:
            settings.state.mkdir(mode=0o700, parents=True, exist_ok=True)
            yield stack
    finally:
        logging.getLogger().removeHandler(handler)


def _close_to_others(settings: ServerSettings) -> None:
    """Close what is stored to the other users of this machine, however it was left."""
    state = settings.state.resolve()  # it may be a link to a larger disk
    check_own_folder(state)
    database, blobs = database_file(_database(settings)), blobs_folder(_blobs(settings))
    count = tighten(state, *(path for path in state.iterdir() if path.is_file())) + tighten_tree(state / FOLDER)
    if database is not None:
        count += tighten(*(database.with_name(database.name + ending) for ending in ("", "-wal", "-shm")))
    if blobs is not None:
        count += tighten_tree(blobs.resolve())
    if count:
        _log.warning("%d files and folders in %s were open to other users, and no longer are", count, state)


def _database(settings: ServerSettings) -> str:
    return settings.database or f"sqlite:///{settings.state.absolute() / 'coordinator.sqlite'}"


def _blobs(settings: ServerSettings) -> str:
    return settings.blobs or str(settings.state / "blobs")


def _open(
    settings: ServerSettings, stack: contextlib.ExitStack
) -> tuple[Context, Mapping[OperatorRole, StartToken], bool]:
    """Open the database and the blobs, and find the operators' tokens; return whether the database is a local file."""
    store = open_store(_database(settings))
    stack.callback(store.close)
    blobs = open_blobs(_blobs(settings))
    stack.callback(blobs.close)
    return Context(store, blobs), operator_tokens(settings, store), _database(settings).startswith("sqlite")


@contextlib.contextmanager
def _audited(settings: ServerSettings, context: Context, url: str) -> Iterator[None]:
    """Enter into the audit log that the coordinator starts, with its settings, and that it stops."""
    detail: dict[str, object] = {
        "version": __version__,
        "process": os.getpid(),
        "workers": settings.workers,
        "insecure_public": settings.insecure_public,
        "pins": list(settings.pins),
        "trusted_proxies": list(settings.trusted_proxies),
        "database": _database(settings).partition(":")[0],
        "log_level": settings.log_level,
    }
    start = AuditEvent(at=context.now(), by=COORDINATOR, action="coordinator.start", target=url, detail=detail)
    context.store.audit.add(start)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the reason for which it stops may be its database
            stop = {"process": os.getpid()}
            context.store.audit.add(replace(start, at=context.now(), action="coordinator.stop", detail=stop))


def _app(settings: ServerSettings, context: Context, local: bool) -> FastAPI:
    return make_app(
        context,
        limits=settings.limits,
        local=local,
        state=settings.state,
        metrics=settings.metrics,
        address=_public_address(settings),
    )


def _public_address(settings: ServerSettings) -> PublicAddress:
    assert settings.public_url is not None  # `_reachable` has found it
    return PublicAddress(settings.public_url, settings.pins)


def _run(server: "CoordinatorServer", sock: socket.socket) -> None:
    _collect_rarely()
    server.run(sockets=[sock])
    if server.failure is not None:
        raise server.failure


def make_server(app: FastAPI, settings: ServerSettings) -> "CoordinatorServer":
    """Return a configured uvicorn server."""
    try:
        config = uvicorn.Config(
            app,
            loop="uvloop",
            http=protocol_class(settings.limits),  # type: ignore[arg-type]  # asyncio takes both kinds of protocols
            ws="none",
            lifespan="on",
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=bool(settings.trusted_proxies),
            forwarded_allow_ips=list(settings.trusted_proxies),
            backlog=2048,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            ssl_certfile=settings.certificate,
            ssl_keyfile=settings.private_key,
            ssl_context_factory=None if settings.certificate is None else lambda _, make: restricted(make()),
        )
        config.load()
    except (OSError, ssl.SSLError) as error:
        raise EdgeFLError(
            f"the certificate {settings.certificate} or its private key cannot be used: {error}",
            fix="Give both as PEM files that belong together.",
        ) from None
    return CoordinatorServer(config, app.state.services)


class CoordinatorServer(uvicorn.Server):
    """A uvicorn server that answers open polls before it waits for them, and does not end the process itself."""

    def __init__(self, config: uvicorn.Config, services: Services) -> None:
        super().__init__(config)
        self._services = services
        self.on_start: Callable[[], None] = lambda: None
        self.failure: Exception | None = None
        """What `on_start` raised, which stops the server gracefully."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then call `on_start`."""
        with contextlib.ExitStack() as stack:
            if self.config.is_ssl:
                stack.enter_context(short_handshakes(self._services.limits.header_seconds))
            await super().startup(sockets)
        try:
            await self._services.threads.run_long(self.on_start)
        except Exception as error:
            self.failure = error
            self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop within seconds, however many devices wait."""
        self._services.long_polls.close()
        self._services.live.close()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop; at the second Ctrl-C, without waiting."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind, protocol)
        with contextlib.ExitStack() as failed:
            failed.callback(sock.close)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
            failed.pop_all()
    except OSError as error:
        raise EdgeFLError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}", fix="Choose another --host or --port."
        ) from None
    return sock


def _address(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _collect_rarely() -> None:
    """Exclude what is loaded now from garbage collection: it stays for ever, and scanning it would stall requests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


def _allow_many_files() -> None:
    """Allow a connection for every device: the default limit is 1,024 files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
