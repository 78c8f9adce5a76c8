"""The audit log of a coordinator: what is in it after a session, and what attackers can and cannot put there."""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from coordinator.federations.tokens import OperatorRole, new_token
from coordinator.http import refusals
from coordinator.http.refusals import RefusedAttempts
from coordinator.http.server_settings import ServerLimits
from coordinator.storage.audit_chain import first_break
from coordinator.storage.records import Actor, AuditEntry, AuditOutcome
from coordinator.thread_pools import ThreadPools
from edgefl.artifacts.bundle import pack_bundle
from edgefl.errors import EdgeFLError
from edgefl.values import Enrolment
from tests.coordinator.fleet import make_context
from tests.coordinator.http.site import Site, serving
from tests.device_runtime.federation import bundle
from tests.values.samples import PROFILE


def flushed(site: Site) -> list[AuditEntry]:
    """Stop the coordinator, which enters what it has counted, and return the whole log."""
    site.stop()
    return site.context.store.audit.page(most=10**6)


def test_a_session_is_recorded_with_who_did_what_and_without_a_secret(folder: Path) -> None:
    with serving(folder, ServerLimits(failures_burst=1000)) as site:
        secrets = [*site.tokens.values()]
        site.federation("other")
        bob = site.admin.post("/v1/tokens", json={"name": "bob", "role": "admin"}).json()["token"]
        admin = site.client(bob)
        bundled = admin.post("/v1/bundles", content=pack_bundle(bundle())).json()["digest"]
        settings = json.loads(site.context.store.federations.all()[0].settings) | {"name": "mine"}
        created = admin.post("/v1/federations", json={"settings": settings, "bundle": bundled})
        assert created.status_code == 201, created.text
        for verb in ("start", "pause", "resume"):
            assert admin.post(f"/v1/federations/mine/{verb}", json={}).status_code == 200
        admin.put("/v1/federations/mine/deadline", json={"seconds": 90})
        label = f"for {new_token('device')}"
        key = admin.post("/v1/federations/mine/keys", json={"label": label, "most_uses": 1}).json()
        with site.agent() as agent:
            enrolled = agent.enrol(Enrolment(enrolment_id="1", profile=PROFILE, software="x", name="pi"), key["key"])
            agent.enrol(Enrolment(enrolment_id="1", profile=PROFILE, software="x", name="pi"), key["key"])
            with pytest.raises(EdgeFLError, match="used up"):
                agent.enrol(Enrolment(enrolment_id="2", profile=PROFILE, software="x"), key["key"])
            again = agent.enrol(Enrolment(enrolment_id="1", profile=PROFILE, software="x", name="pi"), key["key"])
        device = site.client(again.token)
        for _ in range(3):
            assert device.post("/v1/tasks/next").status_code == 200
        assert admin.get("/v1/federations/mine/model?format=weights").status_code == 200
        admin.delete("/v1/federations/mine/devices/pi")
        for _ in range(5):
            assert device.post("/v1/tasks/next").status_code == 403
        admin.delete(f"/v1/federations/mine/keys/{key['id']}")
        site.client(key["key"]).get("/v1/speed?bytes=1")
        guess = new_token(OperatorRole.ADMIN)
        for _ in range(7):
            assert site.client(guess).get("/v1/federations").status_code == 401
        viewer = site.client(site.tokens[OperatorRole.VIEWER])
        assert viewer.post("/v1/federations/mine/abort", json={}).status_code == 403
        admin.post("/v1/federations/mine/abort", json={"reason": f"Bearer {bob}"})
        assert admin.post("/v1/federations/mine/start", json={}).status_code == 409
        rotated = site.admin.post("/v1/tokens/bob/rotate", json={}).json()["token"]
        site.client(bob).get("/v1/federations")
        site.admin.delete("/v1/tokens/bob")
        entries = flushed(site)
        secrets += [bob, rotated, key["key"], enrolled.token, again.token, guess, label.split()[-1]]
    found = {(entry.kind, entry.actor, entry.action, entry.target, entry.outcome) for entry in entries}
    mine = [("federation.create", "mine"), ("federation.start", "mine"), ("federation.pause", "mine")]
    mine += [("federation.resume", "mine"), ("federation.deadline", "mine"), ("federation.abort", "mine")]
    mine += [("key.create", key["id"]), ("key.revoke", key["id"]), ("device.revoke", "pi"), ("bundle.upload", bundled)]
    mine += [("model.export", "mine")]
    assert {("admin", "bob", action, target, "done") for action, target in mine} <= found
    assert {("admin", "admin", f"token.{verb}", "bob", "done") for verb in ("create", "rotate", "revoke")} <= found
    assert ("key", key["id"], "device.enrol", "pi", "done") in found
    assert ("viewer", "viewer", "POST /v1/federations/{name}/abort", "mine", "refused") in found
    assert ("admin", "bob", "POST /v1/federations/{name}/start", "mine", "refused") in found
    counts = {(entry.kind, entry.actor, entry.action, entry.outcome): entry.count for entry in entries}
    assert counts["device", "pi", "access", "refused"] == 5
    assert counts["anyone", "", "access", "refused"] == 7
    assert counts["admin", "bob", "access", "refused"] == 1
    assert counts["key", key["id"], "access", "refused"] == 1
    assert counts["key", key["id"], "device.enrol", "refused"] == 1
    assert counts["device", "pi", "device.enrol", "done"] == 2
    assert not [entry for entry in entries if "tasks" in entry.action]
    strangers = [entry for entry in entries if entry.kind != "coordinator" and entry.target != "asleep-other"]
    assert {entry.address for entry in strangers} == {"127.0.0.1"}
    assert first_break(map(asdict, entries)) is None
    written = json.dumps([asdict(entry) for entry in entries])
    assert [secret for secret in secrets if secret in written] == []
    files = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    own = [secret for secret in secrets if secret not in (bob, label.split()[-1])]  # which the admin wrote elsewhere
    assert [secret for secret in own if secret.encode() in files] == []


def test_the_log_is_read_page_by_page_by_admins(site: Site) -> None:
    for number in range(5):
        site.admin.post("/v1/federations/digits/keys", json={"label": str(number)})
    pages: list[dict[str, Any]] = []
    after = 0
    while page := site.admin.get("/v1/audit", params={"after": after, "limit": 2}).json()["entries"]:
        assert len(page) <= 2
        pages += page
        after = page[-1]["number"]
    assert first_break(pages) is None
    whole = site.admin.get("/v1/audit").json()["entries"]
    assert whole[: len(pages)] == pages
    since = whole[-1]["at"]
    assert all(one["at"] >= since for one in site.admin.get("/v1/audit", params={"since": since}).json()["entries"])
    assert site.admin.get("/v1/audit", params={"until": 1}).json()["entries"] == []
    for query in ("after=-1", "limit=0", "limit=1001", "since=-1", "since=nan", f"after={2**63}"):
        assert site.admin.get(f"/v1/audit?{query}").status_code == 422, query
    viewer = site.client(site.tokens[OperatorRole.VIEWER])
    assert viewer.get("/v1/audit").status_code == 403
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert site.admin.request(method, "/v1/audit").status_code == 405


def test_what_cannot_be_recorded_is_not_exported(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*events: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(site.context.store.audit, "add", full)
        assert site.admin.get("/v1/federations/digits/model?format=weights").status_code == 500
    assert site.admin.get("/v1/federations/digits/model?format=weights").status_code == 200


def refused_by(number: int, *, name: str = "") -> Actor:
    return Actor("anyone", name, f"10.{number // 65536 % 256}.{number // 256 % 256}.{number % 256}")


def test_a_flood_of_refused_attempts_becomes_few_entries_and_none_is_forgotten(folder: Path) -> None:
    context = make_context(folder)
    threads = ThreadPools(local=True)

    async def flood() -> None:
        refused = RefusedAttempts(context, threads)
        for _ in range(20):
            for number in range(5000):
                refused.note(refused_by(number), "access", f"/route/{number}", problem="x")
            await refused._flush()
        assert len(context.store.audit.page(most=10**6)) <= refusals._ENTRIES_BURST
        assert len(refused._pending) <= refusals._MOST_PENDING + 1
        await refused.stop()

    asyncio.run(flood())
    entries = context.store.audit.page(most=10**6)
    assert len(entries) <= refusals._ENTRIES_BURST + refusals._MOST_PENDING + 1
    assert sum(entry.count for entry in entries) == 100_000
    assert {entry.outcome for entry in entries} == {AuditOutcome.REFUSED}
    threads.stop()
    context.store.close()


def test_attempts_from_one_network_of_addresses_are_one_entry(folder: Path) -> None:
    context = make_context(folder)
    threads = ThreadPools(local=True)

    async def story() -> None:
        refused = RefusedAttempts(context, threads)
        for number in range(1000):
            refused.note(Actor("anyone", "", f"2001:db8::{number:x}"), "access", "/metrics")
        await refused._flush()

    asyncio.run(story())
    (entry,) = context.store.audit.page()
    assert (entry.address, entry.count) == ("2001:db8::/64", 1000)
    threads.stop()
    context.store.close()


def test_attempts_wait_for_a_database_that_does_not_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = make_context(folder)
    threads = ThreadPools(local=True)

    async def story() -> None:
        refused = RefusedAttempts(context, threads)
        refused.note(refused_by(1), "access", "/metrics")
        with monkeypatch.context() as broken:

            def fail(*events: object) -> None:
                refused.note(refused_by(1), "access", "/metrics")  # meanwhile
                raise OSError("the disk is full")

            broken.setattr(context.store.audit, "add", fail)
            await refused._flush()
        refused.note(refused_by(1), "access", "/metrics")
        await refused._flush()

    asyncio.run(story())
    (entry,) = context.store.audit.page()
    assert entry.count == 3
    threads.stop()
    context.store.close()
