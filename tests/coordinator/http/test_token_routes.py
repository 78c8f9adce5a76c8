"""Named tokens of operators: each opens what its role may do, until it expires or is revoked, and one admin stays."""

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from coordinator.federations.tokens import OperatorRole, hash_of
from coordinator.http.operator_tokens import operator_tokens
from coordinator.http.server_settings import ServerSettings
from coordinator.storage.records import COORDINATOR
from tests.coordinator.http.site import Site, serving


def made(site: Site, name: str, role: str = "viewer", **more: Any) -> dict[str, Any]:
    answer = site.admin.post("/v1/tokens", json={"name": name, "role": role} | more)
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    told: dict[str, Any] = answer.json()
    return told


def status(site: Site, token: str, path: str = "/v1/federations") -> int:
    site.services.authenticator._failures._levels.clear()
    return site.client(token).get(path).status_code


def listed(site: Site) -> dict[str, dict[str, Any]]:
    tokens = site.admin.get("/v1/tokens").json()["tokens"]
    return {token["name"]: token for token in tokens if token["revoked_at"] is None}


def test_a_named_token_opens_what_its_role_may_do(site: Site) -> None:
    viewer, admin = made(site, "grafana")["token"], made(site, "bob", "admin")["token"]
    assert viewer.startswith("edgefl-viewer-")
    assert admin.startswith("edgefl-admin-")
    assert [status(site, viewer, path) for path in ("/v1/federations", "/v1/tokens", "/v1/audit")] == [200, 403, 403]
    assert [status(site, admin, path) for path in ("/v1/federations", "/v1/tokens", "/v1/audit")] == [200, 200, 200]
    assert site.client(viewer).get("/v1/session").json()["role"] == "viewer"
    everything = site.admin.get("/v1/tokens").text
    assert viewer not in everything
    assert hash_of(viewer) not in everything
    rows = site.context.store.tokens.all()
    assert hash_of(viewer) in {row.hash for row in rows}
    assert viewer not in str(rows)


def test_the_tokens_of_the_start_are_listed_under_their_roles(site: Site) -> None:
    for role in OperatorRole:
        known = listed(site)[role]
        assert (known["role"], known["from_start"], known["expires_at"]) == (role, True, None)


def test_a_revoked_token_opens_nothing_at_once_and_its_name_is_free_again(site: Site) -> None:
    token = made(site, "carol")["token"]
    assert status(site, token) == 200
    assert site.admin.delete("/v1/tokens/carol").status_code == 204
    site.services.authenticator._failures._levels.clear()
    answer = site.client(token).get("/v1/federations")
    assert answer.status_code == 401
    assert "the token 'carol' was revoked" in answer.json()["error"]["problem"]
    assert site.admin.delete("/v1/tokens/carol").status_code == 404
    again = made(site, "carol")["token"]
    assert (status(site, again), status(site, token)) == (200, 401)


def test_a_token_that_another_worker_revokes_is_refused_at_once(site: Site) -> None:
    token = made(site, "dan")["token"]
    assert status(site, token) == 200
    site.context.store.tokens.revoke("dan", site.context.now(), by=COORDINATOR)
    assert status(site, token) == 401


def test_a_token_expires(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    token = made(site, "eve", "admin", expires_seconds=3600)["token"]
    assert status(site, token) == 200
    with monkeypatch.context() as later:
        later.setattr(site.context, "now", lambda: time.time() + 3601)
        site.services.authenticator._failures._levels.clear()
        answer = site.client(token).get("/v1/federations")
    assert (answer.status_code, "has expired" in answer.text) == (401, True)


def test_a_rotated_token_has_a_new_secret_and_the_same_lifetime(site: Site) -> None:
    old = made(site, "frank", "admin", expires_seconds=1000)
    answer = site.admin.post("/v1/tokens/frank/rotate", json={})
    new = answer.json()
    assert (answer.status_code, new["role"], new["name"]) == (201, "admin", "frank")
    assert new["expires_at"] - new["created_at"] == pytest.approx(1000)
    assert (status(site, new["token"]), status(site, old["token"])) == (200, 401)
    longer = site.admin.post("/v1/tokens/frank/rotate", json={"expires_seconds": 5000}).json()
    assert longer["expires_at"] - longer["created_at"] == pytest.approx(5000)
    assert site.admin.post("/v1/tokens/nobody/rotate", json={}).status_code == 404


def test_who_watches_with_a_token_that_is_revoked_is_told_nothing_more(site: Site) -> None:
    client = site.client(made(site, "watcher")["token"])
    with client.stream("GET", "/v1/federations/digits/live") as answer:
        parts = answer.iter_text()
        assert next(parts).startswith("event: snapshot")
        site.admin.delete("/v1/tokens/watcher")
        assert list(parts) == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "x"},
        {"name": "x", "role": "owner"},
        {"name": "", "role": "admin"},
        {"name": "a b", "role": "admin"},
        {"name": "../x", "role": "admin"},
        {"name": "x" * 65, "role": "admin"},
        {"name": "x\n", "role": "admin"},
        {"name": "x", "role": "admin", "expires_seconds": 0},
        {"name": "x", "role": "admin", "expires_seconds": -1},
        {"name": "x", "role": "admin", "expires_seconds": 1e12},
        {"name": "x", "role": "admin", "hash": "0"},
    ],
)
def test_what_is_no_request_makes_no_token(site: Site, body: dict[str, Any]) -> None:
    assert site.admin.post("/v1/tokens", json=body).status_code == 422


def test_names_are_unique_and_those_of_the_start_are_taken(site: Site) -> None:
    made(site, "gina")
    for name in ("gina", "admin", "viewer"):
        answer = site.admin.post("/v1/tokens", json={"name": name, "role": "admin"})
        assert answer.status_code == 409
        assert "Choose another name" in answer.json()["error"]["fix"]


def test_the_use_of_a_token_is_noted(site: Site) -> None:
    token = made(site, "harry")["token"]
    assert listed(site)["harry"]["used_at"] is None
    assert status(site, token) == 200
    end = time.monotonic() + 10
    while (used := listed(site)["harry"]["used_at"]) is None:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert abs(used - time.time()) < 60


def admin_of(site: Site, token: str) -> httpx.Client:
    return site.client(token)


def test_the_last_admin_token_stays_and_a_revoked_one_does_not_come_back(folder: Path) -> None:
    with serving(folder) as site:
        answer = site.admin.delete("/v1/tokens/admin")
        assert answer.status_code == 409
        assert "the last admin token" in answer.json()["error"]["problem"]
        bob = made(site, "bob", "admin")["token"]
        assert site.admin.delete("/v1/tokens/admin").status_code == 204
        assert status(site, site.admin_token) == 401
        assert admin_of(site, bob).delete("/v1/tokens/bob").status_code == 409
        started = {"admin_token": site.admin_token, "viewer_token": site.tokens[OperatorRole.VIEWER]}
        again = operator_tokens(ServerSettings(state=folder, **started), site.context.store)  # type: ignore[arg-type]
        assert not again[OperatorRole.ADMIN].is_valid
        assert again[OperatorRole.VIEWER].is_valid
        assert status(site, site.admin_token) == 401
        started["admin_token"] = "n" * 40
        operator_tokens(ServerSettings(state=folder, **started), site.context.store)  # type: ignore[arg-type]
        assert (status(site, "n" * 40), status(site, bob)) == (200, 200)


def test_a_rotated_token_of_the_start_is_written_to_its_file(folder: Path) -> None:
    with serving(folder) as site:
        file, old = folder / "admin-token", site.admin_token
        file.write_text(old + "\n")
        new = site.admin.post("/v1/tokens/admin/rotate", json={}).json()["token"]
        assert file.read_text() == new + "\n"
        assert file.stat().st_mode & 0o777 == 0o600
        assert (status(site, new), status(site, old)) == (200, 401)
        started = operator_tokens(ServerSettings(state=folder), site.context.store)
        assert started[OperatorRole.ADMIN].is_valid
        assert started[OperatorRole.ADMIN].text == new
        file.write_text("somebody's own token, " * 2)
        admin_of(site, new).post("/v1/tokens/admin/rotate", json={})
        assert file.read_text() == "somebody's own token, " * 2
