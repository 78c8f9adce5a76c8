"""Who may call what: a walk over all routes, with every kind of wrong caller."""

import re
import time
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute

from coordinator.federations.lifecycle import new_key
from coordinator.federations.tokens import OperatorRole, new_token
from coordinator.http.authentication import Caller
from coordinator.http.routes.registration import CALLER, add
from coordinator.http.server_settings import ServerLimits
from tests.coordinator.http.site import Site, serving

DIGEST = "sha256:" + "0" * 64
PLACES = {
    "task_id": "digits-0-owner",
    "digest": DIGEST,
    "key": DIGEST,
    "name": "digits",
    "number": "0",
    "device_id": "owner",
    "key_id": "x",
    "file": "style.css",
    "token_name": "nobody",
}


def routes(site: Site) -> list[APIRoute]:
    return [route for route in site.server.config.app.routes if isinstance(route, APIRoute)]  # type: ignore[union-attr]


def caller_of(route: APIRoute) -> Caller:
    return Caller((route.openapi_extra or {})[CALLER])


def ask(client: httpx.Client, route: APIRoute) -> httpx.Response:
    method = next(iter(route.methods or ()))
    path = re.sub(r"{(\w+)}", lambda found: PLACES[found[1]], route.path)
    params = {"bytes": "1"} if route.path == "/v1/speed" else None
    with client.stream(method, path, params=params) as answer:
        if "event-stream" not in answer.headers.get("Content-Type", ""):  # that one never ends
            answer.read()
        return answer


@pytest.fixture(scope="module")
def secrets(site: Site) -> dict[str, str]:
    """One secret of each kind that is known, and some that are not."""
    site.federation("elsewhere")
    revoked = site.device("revoked")
    site.context.store.devices.revoke("revoked", site.context.now())
    key, revoked_key = new_key(site.context, "digits")
    site.context.store.keys.revoke("digits", key.id, site.context.now())
    owner = site.device("owner")
    site.open_round("owner")
    return {
        "device": owner,
        "stranger": site.device("stranger", "elsewhere"),
        "revoked device": revoked,
        "key": new_key(site.context, "digits")[1],
        "revoked key": revoked_key,
        "unknown": new_token("device"),
        "viewer": site.tokens[OperatorRole.VIEWER],
    }


def test_every_route_declares_its_caller_and_has_its_gate(site: Site) -> None:
    known = routes(site)
    assert len(known) == len(site.server.config.app.routes) > 25  # type: ignore[union-attr]
    gates = {
        caller: {route.dependencies[0].dependency for route in known if caller_of(route) is caller} for caller in Caller
    }
    assert all(len(functions) == 1 for functions in gates.values())
    assert len(set.union(*gates.values())) == len(Caller)
    public = {route.path for route in known if caller_of(route) is Caller.PUBLIC}
    assert public == {"/healthz", "/readyz", "/openapi.json", "/", "/page/{file}", "/join"}


def test_without_a_token_every_route_but_the_public_ones_refuses(folder: Any) -> None:
    with serving(folder, ServerLimits(failures_burst=1000)) as site:
        client = site.client()
        for route in routes(site):
            answer = ask(client, route)
            if caller_of(route) is Caller.PUBLIC:
                assert answer.status_code in (200, 503)
            else:
                assert (answer.status_code, route.path) == (401, route.path)
                assert answer.headers["WWW-Authenticate"].startswith("Bearer")
                assert set(answer.json()["error"]) == {"problem", "fix"}


ALLOWED = {
    Caller.PUBLIC: {"device", "stranger", "revoked device", "key", "revoked key", "unknown", "viewer"},
    Caller.JOINER: {"key"},
    Caller.DEVICE: {"device", "stranger"},
    Caller.MEMBER: {"key", "device", "stranger"},
    Caller.VIEWER: {"viewer"},
    Caller.ADMIN: set(),
}


@pytest.mark.parametrize("kind", ["device", "stranger", "revoked device", "key", "revoked key", "unknown", "viewer"])
def test_a_secret_opens_the_routes_of_its_caller_and_no_other(site: Site, secrets: dict[str, str], kind: str) -> None:
    client = site.client(secrets[kind])
    for route in routes(site):
        site.services.authenticator._failures._levels.clear()
        answer = ask(client, route)
        if kind in ALLOWED[caller_of(route)]:
            assert answer.status_code not in (401, 403), route.path
        else:
            assert answer.status_code in (401, 403), (route.path, answer.text)
            assert answer.json()["error"]["fix"]


def test_the_admin_token_is_none_of_a_device(site: Site) -> None:
    for route in routes(site):
        if caller_of(route) in (Caller.JOINER, Caller.DEVICE, Caller.MEMBER):
            site.services.authenticator._failures._levels.clear()
            assert ask(site.admin, route).status_code == 401


def test_a_device_of_another_federation_finds_nothing(site: Site, secrets: dict[str, str]) -> None:
    digest = site.keep(b"graph of digits")
    stranger, owner = site.client(secrets["stranger"]), site.client(secrets["device"])
    assert owner.get(f"/v1/artifacts/{digest}").content == b"graph of digits"
    assert stranger.get(f"/v1/artifacts/{digest}").status_code == 404
    assert stranger.put("/v1/tasks/digits-0-owner/result", content=site.update("digits-0-owner")).status_code == 404
    assert stranger.post("/v1/tasks/next").json()["plan"] is None


@pytest.mark.parametrize(
    "headers",
    [
        [("Authorization", "Bearer")],
        [("Authorization", "Basic dG9rZW46")],
        [("Authorization", "Bearer " + "x" * 300)],
        [("Authorization", "Bearer token-of-owner"), ("Authorization", "Bearer other")],
    ],
)
def test_what_is_no_bearer_token_is_refused(
    site: Site, secrets: dict[str, str], headers: list[tuple[str, str]]
) -> None:
    site.services.authenticator._failures._levels.clear()
    assert site.client().post("/v1/tasks/next", headers=headers).status_code == 401


def test_an_address_that_guesses_is_slowed_down_and_known_devices_behind_it_are_not(folder: Any) -> None:
    with serving(folder, ServerLimits(failures_burst=5, failures_rate=0.001)) as site:
        site.federation()
        known = site.client(site.device("known"))
        assert known.post("/v1/tasks/next").status_code == 200
        guesses = [site.client(f"guess-{number}").post("/v1/tasks/next") for number in range(8)]
        assert [answer.status_code for answer in guesses] == [401] * 5 + [429] * 3
        assert int(guesses[-1].headers["Retry-After"]) > 0
        assert known.post("/v1/tasks/next").status_code == 200
        assert site.client(site.device("never-seen-before")).post("/v1/tasks/next").status_code == 200
        assert site.client(new_key(site.context, "digits")[1]).get("/v1/speed?bytes=1").status_code == 429


def test_a_join_key_has_a_rate(folder: Any) -> None:
    with serving(folder, ServerLimits(joins_burst=2, joins_rate=0.01)) as site:
        site.federation()
        client = site.client(new_key(site.context, "digits")[1])
        assert [client.get("/v1/speed?bytes=1").status_code for _ in range(3)] == [200, 200, 429]


def test_a_device_that_another_worker_revoked_is_refused_soon(site: Site) -> None:
    client = site.client(site.device("elsewhere-revoked"))
    assert client.post("/v1/tasks/next").status_code == 200
    site.context.store.devices.revoke("elsewhere-revoked", site.context.now())
    end = time.monotonic() + 10
    while client.post("/v1/tasks/next").status_code != 403:
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_device_that_asks_too_often_is_told_when_to_come_again(folder: Any) -> None:
    with serving(folder, ServerLimits(requests_burst=3, requests_rate=0.01)) as site:
        site.federation()
        eager, calm = site.client(site.device("eager")), site.client(site.device("calm"))
        answers = [eager.post("/v1/tasks/next") for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert int(answers[-1].headers["Retry-After"]) > 10
        assert calm.post("/v1/tasks/next").status_code == 200


def test_a_busy_route_cannot_be_added_for_callers_that_it_would_not_check(site: Site) -> None:
    async def anything() -> None: ...

    for caller in set(Caller) - {Caller.DEVICE}:
        with pytest.raises(TypeError, match="nothing would check its caller"):
            add(FastAPI(), "GET", "/x", anything, caller=caller, tag="x", busy=[])
