"""The web page of the coordinator: its files, and the routes that only it uses."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path
from starlette.requests import Request
from starlette.responses import Response

from coordinator.federations import lifecycle
from coordinator.federations.tokens import OperatorRole
from coordinator.http.authentication import Caller
from coordinator.http.error_handlers import HttpError
from coordinator.http.routes.conversion import device_view
from coordinator.http.routes.federations import Named
from coordinator.http.routes.live_events import EventStream
from coordinator.http.routes.openapi_schemas import IDENTIFIER
from coordinator.http.routes.registration import add, media, role_of
from coordinator.http.routes.responses import has_tag, taken_codings
from coordinator.http.routes.view_models import (
    ChartsView,
    ChartView,
    DevicePageView,
    MasksView,
    SessionView,
)
from coordinator.http.services import Services, services_of
from coordinator.page.device_rows import row_of
from coordinator.page.static_files import POLICY, has_charts, page_file, template_ids
from edgefl import __version__

__all__ = ["add_routes", "page_response"]

_BASE = "/v1/federations/{name}"
_FILE = r"^[a-z][a-z0-9_-]{0,40}\.[a-z]{1,5}$"
_MOST_TASKS = 200
_HEADERS = {
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}


def add_routes(app: FastAPI) -> None:
    """Add the routes of this file."""
    public = partial(add, app, caller=Caller.PUBLIC, tag="page")
    viewer = partial(add, app, caller=Caller.VIEWER, tag="page")
    text = {"type": "string"}
    files: dict[int | str, dict[str, Any]] = {
        200: media(text, kind="text/html", about="The file."),
        304: {"description": "The caller has it."},
    }
    files[200]["content"] |= {kind: {"schema": text} for kind in ("text/css", "text/javascript", "image/svg+xml")}
    public("GET", "/", get_page, answers=files)
    public("GET", "/page/{file}", get_file, answers=files)
    viewer("GET", "/v1/session", get_session, model=SessionView)
    events = media(text, kind=EventStream.media_type, about="A snapshot, then changes, until the caller disconnects.")
    viewer("GET", _BASE + "/live", watch, answers={200: events})
    viewer("GET", _BASE + "/charts", get_charts, model=ChartsView)
    viewer("GET", _BASE + "/masks", get_masks, model=MasksView)
    viewer("GET", _BASE + "/devices/{device_id}/page", get_device, model=DevicePageView)


async def get_page(request: Request) -> Response:
    """Get the web page of this coordinator."""
    return await page_response(request, "index.html")


async def get_file(request: Request, file: Annotated[str, Path(pattern=_FILE)]) -> Response:
    """Get a file of the web page."""
    return await page_response(request, file)


async def page_response(request: Request, name: str, *, policy: str = POLICY) -> Response:
    """Return a file of the page as a response, under a content security policy."""
    found = await services_of(request).threads.run(page_file, name)
    if found is None:
        raise HttpError(404, f"the page has no file {name!r}", fix="Open the page itself, at /.")
    packed = "gzip" in taken_codings(request.headers.get("accept-encoding"))
    headers = _HEADERS | {
        "Content-Security-Policy": policy,
        "ETag": f'"{found.digest}-gzip"' if packed else f'"{found.digest}"',
    }
    if has_tag(request.headers.get("if-none-match"), (f'"{found.digest}"', f'"{found.digest}-gzip"')):
        return Response(status_code=304, headers=headers)
    if packed:
        return Response(found.packed, 200, headers | {"Content-Encoding": "gzip"}, found.kind)
    return Response(found.body, 200, headers, found.kind)


async def get_session(request: Request, role: Annotated[OperatorRole, Depends(role_of)]) -> SessionView:
    """Get what the caller's token allows, and what the page needs to know."""
    ids = await services_of(request).threads.run(template_ids)
    return SessionView(role=role.value, version=__version__, charts=has_charts(), style_ids=list(ids))


async def watch(request: Request, name: Named) -> Response:
    """Watch a federation: events, as long as the connection lasts.

    `snapshot` is everything, `change` is what has changed, `beat` says that nothing has.
    """
    services = services_of(request)
    events = await services.live.events(name)
    return EventStream(_while_allowed(events, partial(services.authenticator.still_operator, request)))


async def _while_allowed(
    events: AsyncGenerator[bytes, None], is_allowed: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    """Give events until the caller's token is revoked or expires."""
    async with aclosing(events):
        async for event in events:
            if not await is_allowed():
                return
            yield event


async def get_charts(request: Request, name: Named) -> ChartsView:
    """Get the curves of a federation over its rounds."""
    services = services_of(request)
    return ChartsView.model_validate({"charts": await services.threads.run_long(services.charts.rounds, name)})


async def get_masks(request: Request, name: Named) -> MasksView:
    """Get pictures of what each device trains in the latest round, and figures about its plan."""
    services = services_of(request)
    return MasksView.model_validate(await services.threads.run_long(services.charts.masks, name))


async def get_device(
    request: Request, name: Named, device_id: Annotated[str, Path(pattern=IDENTIFIER)]
) -> DevicePageView:
    """Get everything about one device: its profile, its plan, its history."""
    services = services_of(request)
    return await services.threads.run_long(_device, services, name, device_id)


def _device(services: Services, name: str, device_id: str) -> DevicePageView:
    context = services.context
    federation = lifecycle.existing(context, name)
    device = lifecycle.existing_device(context, name, device_id)
    tasks = list(reversed(context.store.tasks.of(name, device=device.id)[-_MOST_TASKS:]))
    rows = [row_of(task) for task in tasks]
    since = context.now() - context.repository.settings(federation).selection.available_within
    return DevicePageView(
        device=device_view(device, available_since=since),
        plan=json.loads(tasks[0].plan) if tasks else None,
        tasks=rows,
        charts=[ChartView.model_validate(chart) for chart in services.charts.device(rows)],
    )
