"""The devices and the join keys of a federation."""

from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import FastAPI, Path
from starlette.requests import Request
from starlette.responses import Response

from coordinator.federations import lifecycle
from coordinator.http.authentication import Caller, actor_of
from coordinator.http.error_handlers import HttpError
from coordinator.http.public_address import PublicAddress
from coordinator.http.routes.conversion import device_view, key_view, new_key_view
from coordinator.http.routes.federations import Named
from coordinator.http.routes.openapi_schemas import IDENTIFIER, reference
from coordinator.http.routes.registration import add, media
from coordinator.http.routes.request_bodies import read_model
from coordinator.http.routes.view_models import DevicesView, KeyRequest, KeysView, NewKeyView
from coordinator.http.server_settings import ServerLimits
from coordinator.http.services import Services, services_of
from coordinator.storage.records import Actor
from edgefl.coordinator_url import checked_url
from edgefl.errors import EdgeFLError
from edgefl.pairing import Pairing

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
        answers={201: media(reference("NewKeyView"), about="The key, shown only once.")},
        body=media(reference("KeyRequest"), about="What the key is for, and its limits."),
        most_bytes=limits.document_bytes,
    )
    admin("GET", _BASE + "/keys", list_keys, model=KeysView)
    admin("DELETE", _BASE + "/keys/{key_id}", revoke_key, status=204)


async def list_devices(request: Request, name: Named) -> DevicesView:
    """List the devices of a federation."""
    services = services_of(request)

    def listed() -> DevicesView:
        federation = lifecycle.existing(services.context, name)
        since = services.context.now() - services.context.repository.settings(federation).selection.available_within
        devices = services.context.store.devices.of(name)
        return DevicesView(devices=[device_view(device, available_since=since) for device in devices])

    return await services.threads.run_long(listed)


async def revoke_device(request: Request, name: Named, device_id: _Device) -> Response:
    """Revoke a device: its token is no longer valid, and its open task expires."""
    services = services_of(request)
    revoked = await services.threads.run(_revoke_device, services, name, device_id, actor_of(request))
    services.authenticator.forget(revoked)
    services.long_polls.wake([revoked])
    services.driver.wake()
    return Response(status_code=204)


def _revoke_device(services: Services, name: str, device_id: str, by: Actor) -> str:
    device = lifecycle.existing_device(services.context, name, device_id)
    services.context.store.devices.revoke(device.id, services.context.now(), by=by)
    return device.id


async def create_key(request: Request, name: Named) -> Response:
    """Create a join key. It is shown only once: only its hash is stored."""
    services = services_of(request)
    requested = await read_model(request, KeyRequest)
    pairing = _pairing(services, name, requested.address)
    expires_at = None if requested.expires_seconds is None else services.context.now() + requested.expires_seconds
    key, secret = await services.threads.run(
        lifecycle.new_key,
        services.context,
        name,
        label=requested.label,
        most_uses=requested.most_uses,
        expires_at=expires_at,
        by=actor_of(request),
    )
    view: NewKeyView = new_key_view(key, secret, None if pairing is None else replace(pairing, key=secret))
    headers = {"Cache-Control": "no-store"}
    return Response(view.model_dump_json().encode(), 201, headers, "application/json")


def _pairing(services: Services, name: str, address: str | None) -> Pairing | None:
    """Return how devices join at an address. One that no device could use is refused before a key is made for it."""
    if address is None:
        return None
    try:
        known = services.address or PublicAddress(checked_url(address, insecure=True))
        return known.pairing(None, name, address)
    except EdgeFLError as error:
        raise HttpError(422, error.problem, fix=error.fix) from None


async def list_keys(request: Request, name: Named) -> KeysView:
    """List the join keys of a federation, without the keys themselves."""
    services = services_of(request)

    def listed() -> KeysView:
        lifecycle.existing(services.context, name)
        return KeysView(keys=[key_view(key) for key in services.context.store.keys.of(name)])

    return await services.threads.run(listed)


async def revoke_key(request: Request, name: Named, key_id: _Key) -> Response:
    """Revoke a join key. Devices that joined with it stay."""
    services = services_of(request)
    known = await services.threads.run(services.context.store.keys.of, name)
    if key_id not in {key.id for key in known}:
        raise HttpError(404, f"{name!r} has no join key {key_id!r}", fix="List its keys first.")
    now = services.context.now()
    await services.threads.run(services.context.store.keys.revoke, name, key_id, now, by=actor_of(request))
    return Response(status_code=204)
