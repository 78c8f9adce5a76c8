"""The enrolment of devices, their profiles, what their software can run, and how many samples they have."""

import secrets
from typing import Annotated

from fastapi import Depends, FastAPI
from starlette.requests import Request
from starlette.responses import Response

from coordinator.federations.tokens import hash_of, new_token
from coordinator.http.authentication import Caller, address_of
from coordinator.http.error_handlers import HttpError
from coordinator.http.routes.openapi_schemas import reference
from coordinator.http.routes.registration import add, device_of, key_of, media
from coordinator.http.routes.request_bodies import read_document
from coordinator.http.routes.responses import document
from coordinator.http.server_settings import ServerLimits
from coordinator.http.services import Services, services_of
from coordinator.storage.records import OVER, Actor, Admission, AuditOutcome, Device, JoinKey
from edgefl.planning import check_plausible
from edgefl.values import Capabilities, DeviceProfile, Enrolled, Enrolment, SampleCount, dumps

__all__ = ["add_routes"]

_REFUSALS = {
    Admission.UNKNOWN_KEY: (401, "the join key is unknown", "Ask the operator of the federation for one."),
    Admission.REVOKED_KEY: (403, "the join key was revoked", "Ask the operator for a new one."),
    Admission.EXPIRED_KEY: (403, "the join key has expired", "Ask the operator for a new one."),
    Admission.SPENT_KEY: (403, "the join key is used up", "Ask the operator for a new one."),
    Admission.NAME_TAKEN: (409, "another device has this name", "Join with another --name."),
    Admission.REVOKED_DEVICE: (403, "this device was revoked", "Ask the operator; a new device needs a new --home."),
}


def add_routes(app: FastAPI, limits: ServerLimits) -> None:
    """Add the routes of this file."""
    add(
        app,
        "POST",
        "/v1/devices",
        enrol,
        caller=Caller.JOINER,
        tag="devices",
        status=201,
        answers={201: media(reference("Enrolled"), about="The device takes part.")},
        body=media(reference("Enrolment"), about="A device that wants to take part.", required=True),
        most_bytes=limits.document_bytes,
    )
    add(
        app,
        "PUT",
        "/v1/devices/me/profile",
        update_profile,
        caller=Caller.DEVICE,
        tag="devices",
        status=204,
        body=media(reference("DeviceProfile"), about="What the device can do now.", required=True),
        most_bytes=limits.document_bytes,
    )
    add(
        app,
        "PUT",
        "/v1/devices/me/capabilities",
        update_capabilities,
        caller=Caller.DEVICE,
        tag="devices",
        status=204,
        body=media(reference("Capabilities"), about="What the device's software can run now.", required=True),
        most_bytes=limits.document_bytes,
    )
    add(
        app,
        "PUT",
        "/v1/devices/me/samples",
        update_samples,
        caller=Caller.DEVICE,
        tag="devices",
        status=204,
        body=media(reference("SampleCount"), about="How many training samples the device has now.", required=True),
        most_bytes=limits.document_bytes,
    )


async def enrol(request: Request, key: Annotated[JoinKey, Depends(key_of)]) -> Response:
    """Enrol a device.

    The same enrolment id again is the same device: it gets a new token, and the old one is no longer valid.
    """
    services = services_of(request)
    enrolment = await read_document(request, Enrolment)
    check_plausible(enrolment.profile, path=("profile",))
    token, began = new_token("device"), services.context.now()
    admission, device = await services.threads.run(_admit, services, request, enrolment, hash_of(token))
    if device is None:
        status, problem, fix = _REFUSALS[admission]
        by = Actor("key", key.id, address_of(request))
        services.refused.note(by, "device.enrol", enrolment.name or "", problem=problem)
        raise HttpError(status, problem, fix=fix)
    if device.enrolled_at < began:  # the same device again, as often as it likes: counted, not entered one by one
        by = Actor("device", device.id, address_of(request))
        services.refused.note(by, "device.enrol", device.id, outcome=AuditOutcome.DONE, again=True)
    services.authenticator.forget(device.id)
    services.driver.wake()  # a round may have waited for one more device
    request.scope["edgefl.device"] = device.id
    return document(Enrolled(device_id=device.name, token=token), 201, {"Cache-Control": "no-store"})


def _admit(
    services: Services, request: Request, enrolment: Enrolment, token_hash: str
) -> tuple[Admission, Device | None]:
    key_hash = hash_of(services.authenticator.bearer(request))
    key = services.context.store.keys.by_hash(key_hash)
    federation = None if key is None else services.context.store.federations.get(key.federation)
    if federation is not None and federation.state in OVER:  # before a use of the key is wasted
        raise HttpError(
            409, f"the federation {federation.id!r} is {federation.state}", fix="Ask for a key of another federation."
        )
    while True:
        now = services.context.now()
        device = Device(
            id=enrolment.name or f"device-{secrets.token_hex(4)}",
            federation="",
            enrolment_id=enrolment.enrolment_id,
            token_hash=token_hash,
            key="",
            profile=dumps(enrolment.profile),
            software=enrolment.software,
            capabilities=None if enrolment.capabilities is None else dumps(enrolment.capabilities),
            samples=enrolment.samples,
            enrolled_at=now,
            seen_at=now,
        )
        admission, admitted = services.context.store.devices.enrol(device, key_hash, address=address_of(request))
        if admission is not Admission.NAME_TAKEN or enrolment.name is not None:
            return admission, admitted if admission is Admission.ADMITTED else None


async def update_profile(request: Request, device: Annotated[Device, Depends(device_of)]) -> Response:
    """Update the profile of a device."""
    services = services_of(request)
    profile = await read_document(request, DeviceProfile)
    check_plausible(profile)
    await services.threads.run(services.context.store.devices.set_profile, device.id, dumps(profile))
    services.context.corrections.forget(device.id)
    services.authenticator.forget(device.id)
    return Response(status_code=204)


async def update_capabilities(request: Request, device: Annotated[Device, Depends(device_of)]) -> Response:
    """Update what the software of a device can run."""
    services = services_of(request)
    capabilities = await read_document(request, Capabilities)
    await services.threads.run(services.context.store.devices.set_capabilities, device.id, dumps(capabilities))
    services.authenticator.forget(device.id)
    services.driver.wake()  # a round may have waited for a device that can do its tasks
    return Response(status_code=204)


async def update_samples(request: Request, device: Annotated[Device, Depends(device_of)]) -> Response:
    """Update how many training samples a device has. Only its own tasks are planned by this."""
    services = services_of(request)
    count = await read_document(request, SampleCount)
    await services.threads.run(services.context.store.devices.set_samples, device.id, count.samples)
    services.authenticator.forget(device.id)
    services.driver.wake()  # a round may have waited for a device that can do its tasks in time
    return Response(status_code=204)
