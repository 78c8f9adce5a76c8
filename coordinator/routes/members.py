"""Who takes part in a federation: its devices, and the join keys that let them in."""

from functools import partial
from typing import Annotated

from fastapi import FastAPI, Path
from starlette.requests import Request
from starlette.responses import Response

from coordinator import federations
from coordinator.callers import Caller
from coordinator.edge import Edge, edge_of
from coordinator.problems import ProblemError
from coordinator.routes.adding import add, media
from coordinator.routes.bodies import read_model
from coordinator.routes.conversion import device_view, key_view, new_key_view
from coordinator.routes.federations import Named
from coordinator.routes.models import DevicesView, KeyRequest, KeysView, NewKeyView
from coordinator.routes.schemas import IDENTIFIER, reference
from coordinator.server_settings import ServerLimits

__all__ = ["add_routes"]

_BASE = "/v1/federations/{name}"
_Device = Annotated[str, Path(pattern=IDENTIFIER)]
_Key = Annotated[str, Path(pattern=IDENTIFIER)]


def add_routes(app: FastAPI, limits: ServerLimits) -> None:
    """Add the routes of this file."""
    admin = partial(add, app, caller=Caller.ADMIN, tag="members")
    add(app, "GET", _BASE + "/devices", list_devices, caller=Caller.VIEWER, tag="members", model=DevicesView)
    admin("DELETE", _BASE + "/devices/{device_id}", revoke_device, status=204)
    admin(
        "POST",
        _BASE + "/keys",
        create_key,
        status=201,
        answers={201: media(reference("NewKeyView"), about="The key, shown this once.")},
        body=media(reference("KeyRequest"), about="What the key is for, and its limits."),
        most_bytes=limits.json_bytes,
    )
    admin("GET", _BASE + "/keys", list_keys, model=KeysView)
    admin("DELETE", _BASE + "/keys/{key_id}", revoke_key, status=204)


async def list_devices(request: Request, name: Named) -> DevicesView:
    """List the devices of a federation."""
    edge = edge_of(request)

    def listed() -> DevicesView:
        federation = federations.existing(edge.context, name)
        since = edge.context.now() - edge.context.library.settings(federation).selection.available_within
        devices = edge.context.store.devices(name)
        return DevicesView(devices=[device_view(device, available_since=since) for device in devices])

    return await edge.threads.run_long(listed)


async def revoke_device(request: Request, name: Named, device_id: _Device) -> Response:
    """Revoke a device: its token is good no longer, its open task is given up."""
    edge = edge_of(request)
    await edge.threads.run(_revoke_device, edge, name, device_id)
    edge.gate.forget(device_id)
    edge.waiting.tell([device_id])
    edge.driver.wake()
    return Response(status_code=204)


def _revoke_device(edge: Edge, name: str, device_id: str) -> None:
    federations.existing_device(edge.context, name, device_id)
    edge.context.store.revoke_device(device_id, edge.context.now())


async def create_key(request: Request, name: Named) -> Response:
    """Make a join key. It is shown this once: only its hash is kept."""
    edge = edge_of(request)
    asked = await read_model(request, KeyRequest)
    expires_at = None if asked.expires_seconds is None else edge.context.now() + asked.expires_seconds
    key, secret = await edge.threads.run(
        federations.new_key,
        edge.context,
        name,
        label=asked.label,
        most_uses=asked.most_uses,
        expires_at=expires_at,
    )
    view: NewKeyView = new_key_view(key, secret, asked.address)
    headers = {"Cache-Control": "no-store"}
    return Response(view.model_dump_json().encode(), 201, headers, "application/json")


async def list_keys(request: Request, name: Named) -> KeysView:
    """List the join keys of a federation, without the keys themselves."""
    edge = edge_of(request)

    def listed() -> KeysView:
        federations.existing(edge.context, name)
        return KeysView(keys=[key_view(key) for key in edge.context.store.keys(name)])

    return await edge.threads.run(listed)


async def revoke_key(request: Request, name: Named, key_id: _Key) -> Response:
    """Revoke a join key. Devices that it let in stay."""
    edge = edge_of(request)
    known = await edge.threads.run(edge.context.store.keys, name)
    if key_id not in {key.id for key in known}:
        raise ProblemError(404, f"{name!r} has no join key {key_id!r}", fix="List its keys first.")
    await edge.threads.run(edge.context.store.revoke_key, name, key_id, edge.context.now())
    return Response(status_code=204)
