"""The protocol, spoken by the client that devices use."""

import contextlib
import dataclasses
from collections.abc import Iterator

import httpx
import pytest

from coordinator.federations.lifecycle import Verb, move, new_key
from coordinator.federations.tokens import hash_of
from device_runtime.agent.client import RejectedError, UnknownDeviceError
from device_runtime.profiler.network import measure_speed
from edgefl.values import DeviceProfile, Enrolment, LocalResult, Outcome, Reason, Refusal, loads
from tests.coordinator.http.site import Site
from tests.values.samples import PROFILE, TELEMETRY


def enrolment(name: str | None = None, enrolment_id: str = "one") -> Enrolment:
    return Enrolment(enrolment_id=enrolment_id, profile=PROFILE, software="edgefl 0", name=name)


def test_a_device_enrols_and_its_token_is_kept_as_a_hash_alone(site: Site) -> None:
    key = new_key(site.context, "digits")[1]
    with site.agent() as agent:
        enrolled = agent.enrol(enrolment("kitchen", "kitchen-1"), key)
    device = site.context.store.devices.get("kitchen")
    assert enrolled.device_id == "kitchen"
    assert device is not None
    assert device.token_hash == hash_of(enrolled.token)
    assert enrolled.token not in repr(device)


def test_who_asks_twice_is_one_device_with_a_new_token(site: Site) -> None:
    key = new_key(site.context, "digits", most_uses=1)[1]
    with site.agent() as agent:
        first = agent.enrol(enrolment(None, "twice"), key)
        agent.token = first.token
        agent.poll(0)
        second = agent.enrol(enrolment(None, "twice"), key)
        assert second.device_id == first.device_id
        with pytest.raises(UnknownDeviceError, match="token is unknown"):
            agent.poll(0)
        agent.token = second.token
        agent.poll(0)


def test_a_name_that_another_device_has_is_refused_with_advice(site: Site) -> None:
    site.device("taken")
    key = new_key(site.context, "digits")[1]
    with site.agent() as agent, pytest.raises(RejectedError, match="another device has this name") as caught:
        agent.enrol(enrolment("taken", "somebody-else"), key)
    assert "--name" in caught.value.fix


def test_a_name_is_unique_in_a_federation_and_nobody_learns_the_names_of_others(site: Site) -> None:
    site.federation("elsewhere")
    keys = {name: new_key(site.context, name)[1] for name in ("digits", "elsewhere")}
    enrolled = {}
    with site.agent() as agent:
        for name, key in keys.items():
            enrolled[name] = agent.enrol(enrolment("shelf", "shelf-1"), key)
            assert enrolled[name].device_id == "shelf"
            agent.token = enrolled[name].token
            assert agent.poll(0).plan is None
            with pytest.raises(RejectedError, match="another device has this name"):
                agent.enrol(enrolment("shelf", "shelf-2"), key)
    for name in keys:
        listed = site.admin.get(f"/v1/federations/{name}/devices").json()["devices"]
        assert [device["id"] for device in listed].count("shelf") == 1
        assert not any("@" in device["id"] for device in listed)
        assert site.admin.get(f"/v1/federations/{name}/devices/shelf/page").json()["device"]["id"] == "shelf"
    assert site.admin.delete("/v1/federations/elsewhere/devices/shelf").status_code == 204
    with site.agent() as agent:
        agent.token = enrolled["elsewhere"].token
        with pytest.raises(UnknownDeviceError, match="device 'shelf' was revoked"):
            agent.poll(0)
        agent.token = enrolled["digits"].token
        agent.poll(0)


def test_a_join_key_that_is_spent_expired_revoked_or_unknown_lets_nobody_in(site: Site) -> None:
    now = site.context.now()
    spent = new_key(site.context, "digits", most_uses=1)[1]
    expired = new_key(site.context, "digits", expires_at=now - 1)[1]
    revoked_key, revoked = new_key(site.context, "digits")
    site.context.store.keys.revoke("digits", revoked_key.id, now)
    with site.agent() as agent:
        agent.enrol(enrolment(None, "spends-it"), spent)
        for key, says in (
            (spent, "used up"),
            (expired, "has expired"),
            (revoked, "revoked"),
            ("x" * 43, "known"),
        ):
            with pytest.raises(UnknownDeviceError, match=says):
                agent.enrol(enrolment(None, "comes-later"), key)


def test_a_plan_comes_packed_for_who_asks_and_says_how_its_result_may_be(site: Site) -> None:
    site.federation("packing")
    client = site.client(site.device("asks", "packing"))
    nothing = client.post("/v1/tasks/next", headers={"Accept-Encoding": "gzip"})
    assert not {"Content-Encoding", "Accept-Encoding"} & set(nothing.headers)
    (task_id,) = site.open_round("asks", federation="packing")
    plain, packed = (
        client.post("/v1/tasks/next", headers={"Accept-Encoding": coding}) for coding in ("identity", "gzip")
    )
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert plain.headers["Accept-Encoding"] == packed.headers["Accept-Encoding"] == "edgefl-planes, gzip"
    assert plain.json()["plan"]["task_id"] == packed.json()["plan"]["task_id"] == task_id
    assert packed.num_bytes_downloaded < 0.7 * plain.num_bytes_downloaded


def test_a_task_goes_from_poll_over_download_to_receipt(site: Site) -> None:
    site.federation("way")
    token = site.device("walker", "way")
    (task_id,) = site.open_round("walker", federation="way")
    with site.agent(token) as agent:
        plan = agent.poll(0).plan
        assert plan is not None
        assert plan.task_id == task_id
        assert plan.weights is not None
        pieces: list[bytes] = []
        assert agent.download(plan.weights, lambda status, piece: pieces.append(piece)) == 200
        assert b"".join(pieces) == site.context.blobs.get(plan.weights)
        body = site.update(task_id)
        assert agent.upload(task_id, body).outcome is Outcome.ACCEPTED
        assert agent.upload(task_id, body).outcome is Outcome.ALREADY
        with pytest.raises(RejectedError, match="already ended"):
            agent.upload(task_id, site.update(task_id, shift=2.0))
        assert agent.poll(0).plan is None
    task = site.context.store.tasks.get(task_id)
    assert task is not None
    assert site.context.blobs.get(task.update or "") == body


def test_a_receipt_says_when_to_come_back_and_the_update_is_counted_as_it_came(site: Site) -> None:
    site.federation("receipts")
    token = site.device("prompt", "receipts")
    (task_id,) = site.open_round("prompt", federation="receipts")
    body = site.update(task_id)
    with site.agent(token) as agent:
        receipt = agent.upload(task_id, body)
        sent = agent.traffic.up
    assert receipt.retry_seconds is not None
    assert 0.3 <= receipt.retry_seconds < 10
    task = site.context.store.tasks.get(task_id)
    assert task is not None
    assert task.result is not None
    assert loads(LocalResult, task.result).telemetry.transfer.up_bytes == TELEMETRY.transfer.up_bytes + sent


def test_an_agent_and_a_coordinator_pack_by_planes_and_count_the_same(site: Site) -> None:
    site.federation("planes")
    token = site.device("grouping", "planes")
    (task_id,) = site.open_round("grouping", federation="planes")
    body = site.update(task_id)
    with site.agent(token) as agent:
        plan = agent.poll(0).plan
        assert plan is not None
        assert plan.weights is not None
        weights, pieces, before = (
            site.context.blobs.get(plan.weights),
            list[bytes](),
            dataclasses.replace(agent.traffic),
        )
        agent.download(plan.weights, lambda status, piece: pieces.append(piece))
        assert b"".join(pieces) == weights
        assert agent.traffic.down - before.down < 0.9 * len(weights)
        agent.download(plan.weights, lambda status, piece: pieces.append(piece), start=len(weights) - 10)
        assert pieces[-1] == weights[-10:]
        before = dataclasses.replace(agent.traffic)
        agent.upload(task_id, body)
        sent = agent.traffic.up - before.up
    assert sent < 0.9 * len(body)
    task = site.context.store.tasks.get(task_id)
    assert task is not None
    assert site.context.blobs.get(task.update or "") == body
    counted = loads(LocalResult, task.result or "").telemetry.transfer.up_bytes
    assert counted == TELEMETRY.transfer.up_bytes + sent


def test_a_refusal_ends_a_task(site: Site) -> None:
    site.federation("refusals")
    token = site.device("tired", "refusals")
    site.open_round("tired", federation="refusals")
    with site.agent(token) as agent:
        plan = agent.poll(0).plan
        assert plan is not None
        assert agent.refuse(plan, Refusal(reason=Reason.POWER, message="unplugged")).outcome is Outcome.ACCEPTED
        assert agent.poll(0).plan is None


def test_another_devices_task_does_not_exist(site: Site) -> None:
    site.federation("tasks")
    site.device("owner", "tasks")
    token = site.device("neighbour", "tasks")
    (task_id,) = site.open_round("owner", federation="tasks")
    body = site.update(task_id)
    with site.agent(token) as agent:
        with pytest.raises(RejectedError, match="no task"):
            agent.upload(task_id, body)
        answer = site.client(token).put(
            f"/v1/tasks/{task_id}/refusal",
            content='{"schema":"edgefl.refusal/1","reason":"power","message":"no"}',
        )
    assert answer.status_code == 404
    task = site.context.store.tasks.get(task_id)
    assert task is not None
    assert task.state == "open"


def test_a_wrong_update_is_refused_with_what_is_wrong_and_changes_nothing(site: Site) -> None:
    site.federation("wrong")
    token = site.device("wrong-one", "wrong")
    (task_id,) = site.open_round("wrong-one", federation="wrong")
    whole = site.update(task_id)
    client = site.client(token)
    for body in (b"", b"no tensors", whole[:-1], whole + b"x"):
        answer = client.put(f"/v1/tasks/{task_id}/result", content=body)
        assert answer.status_code == 422, answer.text
        assert answer.json()["error"]["fix"]
    task = site.context.store.tasks.get(task_id)
    assert task is not None
    assert task.state == "open"
    assert list((site.context.blobs._spool).iterdir()) == []  # type: ignore[attr-defined]


def test_a_large_update_goes_through_a_file_and_leaves_none(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.federation("large")
    token = site.device("large-one", "large")
    (task_id,) = site.open_round("large-one", federation="large")
    body = site.update(task_id)
    monkeypatch.setattr(site.services, "limits", dataclasses.replace(site.services.limits, kept_bytes=1000))
    with site.agent(token) as agent:
        assert agent.upload(task_id, body).outcome is Outcome.ACCEPTED
    task = site.context.store.tasks.get(task_id)
    assert task is not None
    assert site.context.blobs.get(task.update or "") == body
    assert list((site.context.blobs._spool).iterdir()) == []  # type: ignore[attr-defined]
    assert site.services.memory.used == site.services.spool.used == 0


def test_a_large_body_for_a_task_that_is_not_the_devices_is_not_even_read(site: Site) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield bytes(100_000)

    client = site.client(site.device("flooder"))
    with contextlib.suppress(httpx.WriteError):
        assert client.put("/v1/tasks/nobodys/result", content=endless()).status_code == 404
    assert site.services.spool.used == 0


def test_a_device_sends_no_more_than_two_updates_at_once(site: Site) -> None:
    client = site.client(site.device("doubling"))
    with site.services.uploads.one("doubling"), site.services.uploads.one("doubling"):
        answer = client.put("/v1/tasks/x/result", content=b"x")
        assert answer.status_code == 429
        assert answer.headers["Retry-After"]
    assert client.put("/v1/tasks/x/result", content=b"x").status_code == 404


def test_a_federation_that_is_over_takes_no_device_and_no_use_of_its_key(site: Site) -> None:
    site.federation("over")
    key, secret = new_key(site.context, "over", most_uses=1)
    move(site.context, "over", Verb.ABORT)
    with site.agent() as agent, pytest.raises(RejectedError, match="aborted"):
        agent.enrol(enrolment(None, "too-late"), secret)
    assert next(one for one in site.context.store.keys.of("over") if one.id == key.id).uses == 0


def test_a_new_profile_is_kept(site: Site) -> None:
    token = site.device("profiled")
    with site.agent(token) as agent:
        agent.update_profile(dataclasses.replace(PROFILE, device_name="after the repair"))
    device = site.context.store.devices.get("profiled")
    assert device is not None
    assert loads(DeviceProfile, device.profile).device_name == "after the repair"


def test_speed_is_measured_with_a_join_key_or_a_token(site: Site) -> None:
    for key in (new_key(site.context, "digits")[1], site.device("runner")):
        speed = measure_speed(site.url, key)
        assert speed.download > 0
        assert speed.upload > 0


def test_a_revoked_device_is_told_so_at_once(site: Site) -> None:
    token = site.device("revoked")
    with site.agent(token) as agent:
        agent.poll(0)
        assert site.admin.delete("/v1/federations/digits/devices/revoked").status_code == 204
        with pytest.raises(UnknownDeviceError, match="revoked"):
            agent.poll(0)


def test_a_document_that_is_wrong_is_refused_with_the_field(site: Site) -> None:
    key = new_key(site.context, "digits")[1]
    client = site.client(key)
    answer = client.post("/v1/devices", content=b"{")
    assert answer.status_code == 400
    answer = client.post("/v1/devices", json={"schema": "edgefl.enrolment/1", "enrolment_id": "x"})
    assert answer.status_code == 422
    assert "profile" in answer.json()["error"]["problem"]
