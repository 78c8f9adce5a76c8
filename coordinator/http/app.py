"""The app: every route, the middleware around them, and what starts and stops with them.

`coordinator.http.server` and tests build it. It knows nothing about sockets.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from coordinator.federations.measurement import Measurements
from coordinator.http.authentication import Authenticator
from coordinator.http.byte_budgets import ByteBudget
from coordinator.http.error_handlers import add_handlers
from coordinator.http.middleware import RequestMiddleware
from coordinator.http.public_address import PublicAddress
from coordinator.http.rate_limits import ConcurrencyLimits
from coordinator.http.readiness import Readiness
from coordinator.http.refusals import RefusedAttempts
from coordinator.http.request_limits import LimitsMiddleware
from coordinator.http.routes import (
    artifacts,
    audit,
    bundles,
    devices_and_keys,
    downloads,
    enrolment,
    federations,
    health,
    measurement,
    network_speed,
    page,
    pairing,
    programs,
    sample,
    tasks,
    tokens,
)
from coordinator.http.routes.conversion import LIVE_JSON
from coordinator.http.routes.openapi import openapi_text
from coordinator.http.routes.registration import BusyRoutes
from coordinator.http.server_settings import ServerLimits
from coordinator.http.services import Services
from coordinator.observability.metrics import Metrics
from coordinator.page.charts import Charts
from coordinator.page.live_updates import LiveUpdates
from coordinator.polling.long_poll import LastSeen, LongPolls
from coordinator.rounds.context import Context
from coordinator.rounds.driver import Driver
from coordinator.rounds.upload_sizes import UploadSizes
from coordinator.rounds.uploads import UploadQueue
from coordinator.thread_pools import ThreadPools

__all__ = ["make_app"]

_NO_SUCH = "sha256:" + "0" * 64
_REFRESH_SECONDS = 1.0


def make_app(
    context: Context,
    *,
    limits: ServerLimits | None = None,
    local: bool = False,
    state: Path | None = None,
    metrics: Path | None = None,
    address: PublicAddress | None = None,
) -> FastAPI:
    """Return the app of a context. `local` says that the database is a local file, which is read without threads;
    `state` is the folder with the files of tokens, `metrics` the one in which all workers count; `address` is where
    devices reach it."""
    limits = limits or ServerLimits()
    services = _make_services(context, ThreadPools(local=local), limits, state, Metrics(context, metrics, state))
    services.address = address
    app = _App(
        openapi_url=None,  # our own route says who may call it
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.services = services
    add_handlers(app)
    # The last one added is the outermost.
    app.add_middleware(LimitsMiddleware, limits=limits)
    app.add_middleware(RequestMiddleware, metrics=services.metrics, refused=services.refused)
    tasks.add_routes(app, limits)  # routes are tried in order: the busiest first
    artifacts.add_routes(app)
    enrolment.add_routes(app, limits)
    sample.add_routes(app)
    measurement.add_routes(app)
    network_speed.add_routes(app, limits)
    bundles.add_routes(app, limits)
    programs.add_routes(app, limits)
    federations.add_routes(app, limits)
    devices_and_keys.add_routes(app, limits)
    tokens.add_routes(app, limits)
    audit.add_routes(app)
    downloads.add_routes(app)
    health.add_routes(app)
    page.add_routes(app)
    pairing.add_routes(app)
    app.state.openapi_text = openapi_text(app)
    app.busy = BusyRoutes(app.router.routes)
    app.busy_app = RequestMiddleware(LimitsMiddleware(app.busy.serve, limits), services.metrics, services.refused)
    return app


class _App(FastAPI):
    """An app whose busy routes use our own middleware, without FastAPI's."""

    busy: BusyRoutes
    busy_app: RequestMiddleware

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and self.busy.find(scope):
            scope["app"] = self
            await self.busy_app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _make_services(
    context: Context, threads: ThreadPools, limits: ServerLimits, state: Path | None, metrics: Metrics
) -> Services:
    seen, refused = LastSeen(context, threads), RefusedAttempts(context, threads)
    driver, uploads = Driver(context), ConcurrencyLimits(limits.uploads_at_once)
    services = Services(
        context=context,
        limits=limits,
        threads=threads,
        authenticator=Authenticator(context, threads, limits, refused=refused, seen=seen.note),
        long_polls=LongPolls(context, threads, most=limits.open_polls, seen=seen.note),
        last_seen=seen,
        upload_sizes=UploadSizes(context),
        upload_queue=UploadQueue(context, accepted=driver.wake),
        driver=driver,
        metrics=metrics,
        memory=ByteBudget(limits.memory_bytes, patience=limits.room_seconds, least_rate=limits.waiting_rate),
        spool=ByteBudget(limits.spool_bytes, patience=limits.room_seconds, least_rate=limits.waiting_rate),
        uploads=uploads,
        live=LiveUpdates(context, threads, lambda: uploads.holders, LIVE_JSON),
        charts=Charts(context),
        measurements=Measurements(context),
        readiness=_readiness(context),
        refused=refused,
        state=state,
    )
    services.metrics.watch("edgefl_open_polls", "Devices that wait for a task.", lambda: services.long_polls.open)
    services.metrics.watch("edgefl_body_memory_bytes", "Bytes of bodies in memory.", lambda: services.memory.used)
    services.metrics.watch("edgefl_body_spool_bytes", "Bytes of bodies in spool files.", lambda: services.spool.used)
    return services


def _readiness(context: Context) -> Readiness:
    def database() -> None:
        context.store.federations.get("-")
        context.store.check_writable(context.worker, context.now())

    def blob_store() -> None:
        context.blobs.size(_NO_SUCH)
        context.blobs.check_writable()

    return Readiness(
        {
            "the database cannot be read and written": database,
            "the blob store cannot be read and written": blob_store,
        }
    )


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Start everything, and stop it in reverse order: accepted updates are stored before the threads stop."""
    services: Services = app.state.services
    async with AsyncExitStack() as stack:
        stack.callback(services.threads.stop)
        refresher = asyncio.create_task(_refresh_for_ever(services.metrics))
        stack.callback(refresher.cancel)
        services.refused.start()
        stack.push_async_callback(services.refused.stop)
        await services.last_seen.start()
        stack.push_async_callback(services.last_seen.stop)
        await services.long_polls.start()  # before the driver, whose first round wakes devices
        services.driver.start()
        stack.push_async_callback(services.threads.run_long, services.driver.stop)
        services.upload_queue.start()
        stack.push_async_callback(services.threads.run_long, services.upload_queue.stop)
        stack.push_async_callback(services.long_polls.stop)
        yield


async def _refresh_for_ever(metrics: Metrics) -> None:
    """Let the other workers see the present numbers of this one."""
    while True:
        metrics.refresh()
        await asyncio.sleep(_REFRESH_SECONDS)
