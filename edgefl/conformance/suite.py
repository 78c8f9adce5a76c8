"""One run of the suite: a server, a client for every act, and the report.

The command line and tests call `run_suite`. Nothing here knows how a client works: `StartClient` starts one.
"""

import contextlib
import ssl
import tempfile
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

__all__ = ["SuiteSettings", "is_passed", "run_suite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteSettings:
    """How a run is set up."""

    host: str = "127.0.0.1"
    port: int = 0
    tls: ssl.SSLContext | None = None
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
    outcomes: list[RowOutcome] = []
    with _served(director, stage, settings) as url, tempfile.TemporaryDirectory(prefix="edgefl-conformance-") as folder:
        data = Path(folder) / "conformance.npz"
        write_samples(data)
        for act in Act:
            of_act = in_order([row for row in rows if row.act is act])
            if of_act:
                stage.begin_act(act.value)
                invitation = Invitation(url, stage.key, data, Path(folder) / act.value, act.value)
                outcomes += director.lead(of_act, start, invitation)
    by_name = {outcome.row.name: outcome for outcome in outcomes}
    return [by_name[row.name] for row in rows]


def is_passed(outcomes: Sequence[RowOutcome]) -> bool:
    """Return whether no row is wrong, and none was left out that asks for something."""
    return all(outcome.verdict in (RowVerdict.RIGHT, RowVerdict.NOT_ASKED) for outcome in outcomes)


@contextlib.contextmanager
def _served(director: Director, stage: Stage, settings: SuiteSettings) -> Iterator[str]:
    """Serve the coordinator, and another origin beside it; give the coordinator's address."""
    server = RawHttpServer(director, host=settings.host, port=settings.port, tls=settings.tls)
    elsewhere = RawHttpServer(director, host=settings.host, tls=settings.tls, is_elsewhere=True)
    stage.elsewhere, stage.pause = elsewhere.url, server.pause
    try:
        yield server.url
    finally:
        server.close()
        elsewhere.close()
