"""Adds routes. Each must say who may call it and how large a body may be.

Routes read bodies themselves (`coordinator.http.routes.request_bodies`), after the caller was authenticated: FastAPI
would read a stranger's body first.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from coordinator.federations.tokens import OperatorRole
from coordinator.http.authentication import Caller
from coordinator.http.request_limits import MOST_BYTES, TAKES_GZIP, TAKES_PLANES
from coordinator.http.routes.openapi_schemas import reference
from coordinator.http.services import services_of
from coordinator.storage.records import Device, JoinKey

__all__ = [
    "CALLER",
    "SCHEMES",
    "BusyRoutes",
    "add",
    "device_of",
    "federation_of",
    "key_of",
    "media",
    "parameter",
    "role_of",
]

CALLER = "x-caller"
"""The key in a route's `openapi_extra` for who may call it."""

_PROBLEM = {
    "description": "What is wrong, and what to do.",
    "content": {"application/json": {"schema": reference("Problem")}},
}

SCHEMES: Mapping[str, Any] = {
    "join_key": {"type": "http", "scheme": "bearer", "description": "A join key of a federation."},
    "device_token": {"type": "http", "scheme": "bearer", "description": "What a device got when it enrolled."},
    "admin_token": {"type": "http", "scheme": "bearer", "description": "The operator's token."},
    "viewer_token": {"type": "http", "scheme": "bearer", "description": "The token of a viewer, who may only read."},
}
_SECURITY: Mapping[Caller, list[dict[str, list[str]]]] = {
    Caller.PUBLIC: [],
    Caller.JOINER: [{"join_key": []}],
    Caller.DEVICE: [{"device_token": []}],
    Caller.MEMBER: [{"join_key": []}, {"device_token": []}],
    Caller.VIEWER: [{"viewer_token": []}, {"admin_token": []}],
    Caller.ADMIN: [{"admin_token": []}],
}


async def device_of(request: Request) -> Device:
    """Authenticate a device; routes that need it take this as a dependency."""
    return await services_of(request).authenticator.device(request)


async def key_of(request: Request) -> JoinKey:
    """Authenticate the holder of a join key."""
    return await services_of(request).authenticator.joiner(request)


async def federation_of(request: Request) -> str:
    """Authenticate a device or the holder of a join key; return the id of the federation that it belongs to."""
    return await services_of(request).authenticator.member(request)


async def _admin(request: Request) -> None:
    await services_of(request).authenticator.admin(request)


async def role_of(request: Request) -> OperatorRole:
    """Authenticate a viewer or the admin."""
    return await services_of(request).authenticator.viewer(request)


async def _anybody() -> None:
    """Accept everybody."""


_AUTHENTICATION: Mapping[Caller, Callable[..., Any]] = {
    Caller.PUBLIC: _anybody,
    Caller.JOINER: key_of,
    Caller.DEVICE: device_of,
    Caller.MEMBER: federation_of,
    Caller.VIEWER: role_of,
    Caller.ADMIN: _admin,
}


def add(
    app: FastAPI,
    method: str,
    path: str,
    endpoint: Callable[..., Any],
    *,
    caller: Caller,
    tag: str,
    answers: Mapping[int | str, dict[str, Any]] | None = None,
    model: type[BaseModel] | None = None,
    status: int = 200,
    body: dict[str, Any] | None = None,
    most_bytes: int = 0,
    takes_planes: bool = False,
    takes_gzip: bool = True,
    busy: Sequence[dict[str, Any]] | None = None,
) -> None:
    """Add a route. It returns a `model`, or a `Response` that `answers` describes.

    A `busy` route skips FastAPI: it is called with the request and the device, and describes its parameters here.
    """
    extra: dict[str, Any] = {CALLER: caller.value, MOST_BYTES: most_bytes, "security": _SECURITY[caller]}
    if body is not None:
        extra["requestBody"] = body
    if takes_planes:
        extra[TAKES_PLANES] = True
    if not takes_gzip:
        extra[TAKES_GZIP] = False
    if busy is not None:
        extra["parameters"] = list(busy)
    summary, _, description = (endpoint.__doc__ or "").strip().partition("\n")
    app.router.add_api_route(
        path,
        endpoint,
        methods=[method],
        dependencies=[Depends(_AUTHENTICATION[caller])],
        openapi_extra=extra,
        operation_id=endpoint.__name__,
        summary=summary.rstrip("."),
        description=description.strip(),
        tags=[tag],
        response_model=model,
        status_code=status,
        response_class=JSONResponse if model is not None else Response,
        responses={**(answers or {}), "4XX": _PROBLEM, "5XX": _PROBLEM},
        route_class_override=None if busy is None else _BusyRoute,
    )


class _BusyRoute(APIRoute):
    """A route that devices call some hundred times a second. FastAPI's handling of parameters would take longer than
    everything else."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        super().__init__(path, endpoint, **more)
        if (self.openapi_extra or {}).get(CALLER) != Caller.DEVICE:
            raise TypeError(f"{path} is not a route for devices, so nothing would check its caller")
        self.methods: set[str] = set(self.methods or ())
        self.app = self._serve

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        response: Response = await self.endpoint(request, await device_of(request))
        await response(scope, receive, send)


class BusyRoutes:
    """Serves busy routes without FastAPI, Starlette and their search through all routes. `RequestMiddleware` answers
    what they raise, in the same form."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._routes = [route for route in routes if isinstance(route, _BusyRoute)]

    def find(self, scope: Scope) -> bool:
        """Return whether a request is for a busy route, which is then in its scope."""
        for route in self._routes:
            found = route.path_regex.fullmatch(scope["path"])
            if found is not None and scope["method"] in route.methods:
                scope["route"], scope["path_params"] = route, found.groupdict()
                return True
        return False

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request for a busy route."""
        await scope["route"].app(scope, receive, send)


def parameter(name: str, place: str, schema: dict[str, Any], about: str) -> dict[str, Any]:
    """Return the OpenAPI description of a parameter."""
    return {"name": name, "in": place, "required": place == "path", "schema": schema, "description": about}


def media(
    schema: dict[str, Any], *, kind: str = "application/json", about: str = "Done.", **more: Any
) -> dict[str, Any]:
    """Return the OpenAPI description of a body."""
    return {"description": about, "content": {kind: {"schema": schema}}, **more}
