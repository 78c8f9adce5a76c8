"""How a route is added. It cannot be done without saying who may call it and how large a body may be.

Bodies are read by the routes themselves (`coordinator.http.routes.request_bodies`), after the caller was let in:
FastAPI would read a stranger's body first.
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
from coordinator.http.request_limits import MOST_BYTES, TAKES_PLANES
from coordinator.http.routes.openapi_schemas import reference
from coordinator.http.services import services_of
from coordinator.storage.records import Device, JoinKey

__all__ = ["CALLER", "SCHEMES", "BusyRoutes", "add", "device_of", "key_of", "media", "parameter", "role_of"]

CALLER = "x-caller"
"""The key in a route's `openapi_extra` that says who may call it."""

_PROBLEM = {
    "description": "What is wrong, and what to do.",
    "content": {"application/json": {"schema": reference("Problem")}},
}

SCHEMES: Mapping[str, Any] = {
    "join_key": {"type": "http", "scheme": "bearer", "description": "A join key of a federation."},
    "device_token": {"type": "http", "scheme": "bearer", "description": "What a device got when it enrolled."},
    "admin_token": {"type": "http", "scheme": "bearer", "description": "The operator's token."},
    "viewer_token": {"type": "http", "scheme": "bearer", "description": "The token of who may only look."},
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
    """Let a device in; routes that need it take this as a dependency."""
    return await services_of(request).authenticator.device(request)


async def key_of(request: Request) -> JoinKey:
    """Let somebody with a join key in."""
    return await services_of(request).authenticator.joiner(request)


async def _member(request: Request) -> None:
    await services_of(request).authenticator.member(request)


async def _admin(request: Request) -> None:
    await services_of(request).authenticator.admin(request)


async def role_of(request: Request) -> OperatorRole:
    """Let somebody in who may look."""
    return await services_of(request).authenticator.viewer(request)


async def _anybody() -> None:
    """Let everybody in."""


_GATES: Mapping[Caller, Callable[..., Any]] = {
    Caller.PUBLIC: _anybody,
    Caller.JOINER: key_of,
    Caller.DEVICE: device_of,
    Caller.MEMBER: _member,
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
    busy: Sequence[dict[str, Any]] | None = None,
) -> None:
    """Add a route. It answers with a `model`, or with a `Response` that `answers` describes.

    One that is `busy` skips FastAPI: it is called with the request and the device, and describes its parameters here.
    """
    extra: dict[str, Any] = {CALLER: caller.value, MOST_BYTES: most_bytes, "security": _SECURITY[caller]}
    if body is not None:
        extra["requestBody"] = body
    if takes_planes:
        extra[TAKES_PLANES] = True
    if busy is not None:
        extra["parameters"] = list(busy)
    summary, _, description = (endpoint.__doc__ or "").strip().partition("\n")
    app.router.add_api_route(
        path,
        endpoint,
        methods=[method],
        dependencies=[Depends(_GATES[caller])],
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
    """A route of devices that is called some hundred times a second. Finding out what FastAPI's parameters are would
    take longer than all the rest."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **more: Any) -> None:
        super().__init__(path, endpoint, **more)
        if (self.openapi_extra or {}).get(CALLER) != Caller.DEVICE:
            raise TypeError(f"{path} is no route of devices, and nobody would check its caller")
        self.methods: set[str] = set(self.methods or ())
        self.app = self._serve

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        response: Response = await self.endpoint(request, await device_of(request))
        await response(scope, receive, send)


class BusyRoutes:
    """Takes requests of busy routes past FastAPI, Starlette and their search through all routes. What they raise is
    answered by `RequestMiddleware`, in the same form."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._routes = [route for route in routes if isinstance(route, _BusyRoute)]

    def find(self, scope: Scope) -> bool:
        """Whether a request is for a busy route; the scope then names it."""
        for route in self._routes:
            found = route.path_regex.fullmatch(scope["path"])
            if found is not None and scope["method"] in route.methods:
                scope["route"], scope["path_params"] = route, found.groupdict()
                return True
        return False

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request that was found."""
        await scope["route"].app(scope, receive, send)


def parameter(name: str, place: str, schema: dict[str, Any], about: str) -> dict[str, Any]:
    """Return the OpenAPI description of a parameter."""
    return {"name": name, "in": place, "required": place == "path", "schema": schema, "description": about}


def media(
    schema: dict[str, Any], *, kind: str = "application/json", about: str = "Done.", **more: Any
) -> dict[str, Any]:
    """Return the OpenAPI description of a body."""
    return {"description": about, "content": {kind: {"schema": schema}}, **more}
