"""What routes work with: one value that holds every service of the app."""

from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request

from coordinator.federations.measurement import Measurements
from coordinator.http.authentication import Authenticator
from coordinator.http.byte_budgets import ByteBudget
from coordinator.http.public_address import PublicAddress
from coordinator.http.rate_limits import ConcurrencyLimits
from coordinator.http.readiness import Readiness
from coordinator.http.refusals import RefusedAttempts
from coordinator.http.server_settings import ServerLimits
from coordinator.observability.metrics import Metrics
from coordinator.page.charts import Charts
from coordinator.page.live_updates import LiveUpdates
from coordinator.polling.long_poll import LastSeen, LongPolls
from coordinator.rounds.context import Context
from coordinator.rounds.driver import Driver
from coordinator.rounds.upload_sizes import UploadSizes
from coordinator.rounds.uploads import UploadQueue
from coordinator.thread_pools import ThreadPools

__all__ = ["Services", "services_of"]


@dataclass(slots=True)
class Services:
    """What routes work with. The app builds it."""

    context: Context
    limits: ServerLimits
    threads: ThreadPools
    authenticator: Authenticator
    long_polls: LongPolls
    last_seen: LastSeen
    upload_sizes: UploadSizes
    """How large the update of a task may be."""
    upload_queue: UploadQueue
    driver: Driver
    metrics: Metrics
    memory: ByteBudget
    """Bytes of bodies in memory."""
    spool: ByteBudget
    """Bytes of bodies in spool files."""
    uploads: ConcurrencyLimits
    """Concurrent uploads of each device."""
    live: LiveUpdates
    charts: Charts
    measurements: Measurements
    """What devices measure themselves with."""
    readiness: Readiness
    refused: RefusedAttempts
    state: Path | None
    """The folder with the files of tokens."""
    address: PublicAddress | None = None
    """Where devices reach this coordinator; None if it is not known, as in tests."""


def services_of(request: Request) -> Services:
    """Return the services of the app that a request is for."""
    services: Services = request.app.state.services
    return services
