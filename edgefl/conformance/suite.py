"""One run of the suite: a server, a client for every act, and the report.

The command line and tests call `run_suite`. Nothing here knows how a client works: `StartClient` starts one.
"""

import contextlib
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgefl.conformance.catalogue import in_order
from edgefl.conformance.client_starts import Invitation, StartClient
from edgefl.conformance.director import Director, RowOutcome
from edgefl.conformance.http_server import RawHttpServer
from edgefl.conformance.samples import write_samples
from edgefl.conformance.situation import Act, Row, RowVerdict
from edgefl.conformance.stage import Stage
from edgefl.conformance.tls_identities import TlsIdentities, make_tls_identities

__all__ = ["SuiteSettings", "is_passed", "run_suite"]

_LONGEST_IMPERSONATION = 30.0
"""Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteSettings:
    """How a run is set up."""

    host: str = "127.0.0.1"
    port: int = 0
    has_tls: bool = False
    """Whether to serve over TLS, with keys made for this run."""
    patience: float = 60.0
    """Seconds without a request after which a row is given up."""
    least_backoff: float = 0.45
    """Seconds that a client waits at the least before it repeats what failed."""
    quiet_seconds: float = 1.5
    """A client that sends nothing for so long has stopped."""


def run_suite(
    rows: Sequence[Row],
    start: StartClient,
    settings: SuiteSettings | None = None,
    *,
    progress: Callable[[RowOutcome], None] = lambda outcome: None,
) -> list[RowOutcome]:
    """Lead clients through some rows, and return how each went, in the order of the rows."""
    settings = settings or SuiteSettings()
    stage = Stage(least_backoff=settings.least_backoff, quiet_seconds=settings.quiet_seconds)
    director = Director(stage, patience=settings.patience, progress=progress)
    outcomes = [
        RowOutcome(row, RowVerdict.NOT_ASKED, "only with TLS") for row in rows if row.needs_tls and not settings.has_tls
    ]
    left = [row for row in rows if settings.has_tls or not row.needs_tls]
    with tempfile.TemporaryDirectory(prefix="edgefl-conformance-") as name:
        folder = Path(name)
        data = folder / "conformance.npz"
        write_samples(data)
        tls = make_tls_identities(folder / "tls", settings.host) if settings.has_tls else None
        with _served(director, stage, settings, tls) as server:
            for act in Act:
                of_act = in_order([row for row in left if row.act is act])
                if of_act:
                    stage.begin_act(act.value)
                    server.serve_as(None if tls is None else tls.served)
                    invitation = Invitation(
                        server.url, stage.key, data, folder / act.value, act.value, () if tls is None else tls.pins
                    )
                    outcomes += director.lead(of_act, start, invitation)
    by_name = {outcome.row.name: outcome for outcome in outcomes}
    return [by_name[row.name] for row in rows]


def is_passed(outcomes: Sequence[RowOutcome]) -> bool:
    """Return whether no row is wrong, and none was left out that asks for something."""
    return all(outcome.verdict in (RowVerdict.RIGHT, RowVerdict.NOT_ASKED) for outcome in outcomes)


@contextlib.contextmanager
def _served(
    director: Director, stage: Stage, settings: SuiteSettings, tls: TlsIdentities | None
) -> Iterator[RawHttpServer]:
    """Serve the coordinator, and another origin beside it."""
    served = None if tls is None else tls.served
    server = RawHttpServer(director, host=settings.host, port=settings.port, tls=served)
    elsewhere = RawHttpServer(director, host=settings.host, tls=served, is_elsewhere=True)
    stage.elsewhere, stage.pause = elsewhere.url, server.pause
    if tls is not None:
        stage.pins = tls.pins
        stage.use_next_key = lambda: server.serve_as(tls.next)
        stage.impersonate = lambda seconds: _impersonate(server, tls, seconds)
    try:
        yield server
    finally:
        server.close()
        elsewhere.close()


def _impersonate(server: RawHttpServer, tls: TlsIdentities, seconds: float) -> None:
    """Answer with a key that is not pinned until somebody has connected, and for a while longer. Returns at once."""
    before = server.accepted
    server.serve_as(tls.other, is_elsewhere=True)

    def end() -> None:
        latest = time.monotonic() + _LONGEST_IMPERSONATION
        while server.accepted == before and time.monotonic() < latest:
            time.sleep(0.02)
        time.sleep(seconds)
        server.serve_as(tls.served)

    threading.Thread(target=end, daemon=True).start()
