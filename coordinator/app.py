"""The app: every route, what surrounds them, and what starts and stops with them.

Made by `coordinator.server`, and by tests. It knows no sockets.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from coordinator.allowances import Budget, Slots
from coordinator.callers import Gate
from coordinator.context import Context
from coordinator.driver import Driver
from coordinator.edge import Edge, EdgeMiddleware
from coordinator.intake import Intake
from coordinator.limits import LimitsMiddleware
from coordinator.metrics import Metrics
from coordinator.page.charts import Charts
from coordinator.problems import add_handlers
from coordinator.routes import artifacts, bundles, devices, federations, members, page, results, service, speed, tasks
from coordinator.routes.adding import BusyRoutes
from coordinator.routes.live import Live
from coordinator.routes.openapi import openapi_text
from coordinator.server_settings import ServerLimits
from coordinator.threads import Threads
from coordinator.tokens import Role
from coordinator.waiting import Seen, Waiting

__all__ = ["make_app"]


def make_app(
    context: Context, *, people: Mapping[Role, str], limits: ServerLimits | None = None, local: bool = False
) -> FastAPI:
    """Return the app of a context. `people` is what is kept of the tokens of operators; `local` says that the database
    is a file of this machine, which is read without threads."""
    limits = limits or ServerLimits()
    edge = _make_edge(context, Threads(local=local), limits, people)
    app = _App(
        openapi_url=None,  # our own route, which says who may call it
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.edge = edge
    app.state.broken = ["it is starting"]
    add_handlers(app)
    # The last one added is the outermost.
    app.add_middleware(LimitsMiddleware, limits=limits)
    app.add_middleware(EdgeMiddleware, metrics=edge.metrics)
    tasks.add_routes(app, limits)  # routes are tried in order: the busiest first
    artifacts.add_routes(app)
    devices.add_routes(app, limits)
    speed.add_routes(app, limits)
    bundles.add_routes(app, limits)
    federations.add_routes(app, limits)
    members.add_routes(app, limits)
    results.add_routes(app)
    service.add_routes(app)
    page.add_routes(app)
    app.state.openapi_text = openapi_text(app)
    app.busy = BusyRoutes(app.router.routes)
    app.busy_app = EdgeMiddleware(LimitsMiddleware(app.busy.serve, limits), edge.metrics)
    return app


class _App(FastAPI):
    """An app whose busy routes have our own layers around them, and none of FastAPI's."""

    busy: BusyRoutes
    busy_app: EdgeMiddleware

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and self.busy.find(scope):
            scope["app"] = self
            await self.busy_app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _make_edge(context: Context, threads: Threads, limits: ServerLimits, people: Mapping[Role, str]) -> Edge:
    seen = Seen(context, threads)
    driver, uploads = Driver(context), Slots(limits.uploads_at_once)
    edge = Edge(
        context=context,
        limits=limits,
        threads=threads,
        gate=Gate(context, threads, limits, people=people, seen=seen.note),
        waiting=Waiting(context, threads, most=limits.open_polls, seen=seen.note),
        seen=seen,
        intake=Intake(context, accepted=driver.wake),
        driver=driver,
        metrics=Metrics(context),
        memory=Budget(limits.memory_bytes, patience=limits.room_seconds),
        spool=Budget(limits.spool_bytes, patience=limits.room_seconds),
        uploads=uploads,
        live=Live(context, threads, lambda: uploads.holders),
        charts=Charts(context),
    )
    edge.metrics.watch("edgefl_open_polls", "Devices that wait for a task.", lambda: edge.waiting.open)
    edge.metrics.watch("edgefl_body_memory_bytes", "Bytes of bodies in memory.", lambda: edge.memory.used)
    edge.metrics.watch("edgefl_body_spool_bytes", "Bytes of bodies on their way into files.", lambda: edge.spool.used)
    return edge


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Start everything, and stop it in the other order: what was accepted is entered before the threads go."""
    edge: Edge = app.state.edge
    async with AsyncExitStack() as stack:
        stack.callback(edge.threads.stop)
        await edge.seen.start()
        stack.push_async_callback(edge.seen.stop)
        await edge.waiting.start()  # before the driver, whose first round has somebody to tell
        edge.driver.start()
        stack.push_async_callback(edge.threads.run_long, edge.driver.stop)
        edge.intake.start()
        stack.push_async_callback(edge.threads.run_long, edge.intake.stop)
        stack.push_async_callback(edge.waiting.stop)
        yield
