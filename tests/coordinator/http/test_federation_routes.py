"""What an operator does: bundles, federations, keys, devices, models."""

import sys
from typing import Any

import httpx
import onnx
import pytest

from edgefl.masks import full_mask
from edgefl.values import to_json
from edgefl.wire import BodyKind, decode, decode_mask
from tests.artifacts.hostile_bundles import HOSTILE
from tests.coordinator.fleet import settings_of
from tests.coordinator.http.site import Site
from tests.device_runtime.federation import BUNDLE, bundle


def settings(name: str, **changes: Any) -> dict[str, Any]:
    return to_json(settings_of(name=name, **changes))


@pytest.fixture(scope="module")
def bundle_digest(site: Site) -> str:
    answer = site.admin.post("/v1/bundles", content=BUNDLE.read_bytes())
    assert answer.status_code == 201, answer.text
    digest: str = answer.json()["digest"]
    return digest


def test_a_bundle_may_be_sent_twice_and_a_broken_one_not_at_all(site: Site, bundle_digest: str) -> None:
    assert site.admin.post("/v1/bundles", content=BUNDLE.read_bytes()).json()["digest"] == bundle_digest
    for body in (b"", b"no zip", BUNDLE.read_bytes()[:-100]):
        answer = site.admin.post("/v1/bundles", content=body)
        assert 400 <= answer.status_code < 500, answer.text
        assert answer.json()["error"]["fix"]


@pytest.mark.parametrize("how", HOSTILE)
def test_a_hostile_bundle_is_refused_when_it_is_uploaded(site: Site, how: str) -> None:
    answer = site.admin.post("/v1/bundles", content=HOSTILE[how]())
    assert answer.status_code in (400, 413, 422), answer.text
    assert answer.json()["error"]["fix"]


def test_a_federation_is_created_once_and_another_of_its_name_is_refused(site: Site, bundle_digest: str) -> None:
    asked = {"settings": settings("new"), "bundle": bundle_digest}
    first = site.admin.post("/v1/federations", json=asked)
    again = site.admin.post("/v1/federations", json=asked)
    other = site.admin.post("/v1/federations", json={"settings": settings("new", seed=8), "bundle": bundle_digest})
    assert [answer.status_code for answer in (first, again, other)] == [201, 200, 409]
    assert first.json()["state"] == "created"
    assert first.json()["settings"] == settings("new")
    assert "seed" in other.json()["error"]["problem"]


def test_a_federation_of_a_bundle_that_is_not_there_is_refused(site: Site) -> None:
    asked = {"settings": settings("without"), "bundle": "sha256:" + "0" * 64}
    answer = site.admin.post("/v1/federations", json=asked)
    assert answer.status_code == 404
    assert "/v1/bundles" in answer.json()["error"]["fix"]


def test_nothing_is_imported_because_somebody_sent_its_name(site: Site, bundle_digest: str) -> None:
    named = settings("outside") | {"strategy": {"name": "antigravity:Mine", "settings": {}}}
    answer = site.admin.post("/v1/federations", json={"settings": named, "bundle": bundle_digest})
    assert answer.status_code == 403, answer.text
    assert "edgefl serve FILE" in answer.json()["error"]["fix"]
    assert "antigravity" not in sys.modules


def test_settings_that_are_wrong_are_refused_with_the_field(site: Site, bundle_digest: str) -> None:
    wrong = settings("wrong") | {"rounds": {"count": 0}}
    answer = site.admin.post("/v1/federations", json={"settings": wrong, "bundle": bundle_digest})
    assert answer.status_code == 422
    assert "rounds.count" in answer.json()["error"]["problem"]


def test_a_deadline_below_a_second_is_refused_before_anything_else(site: Site) -> None:
    wrong = {"settings": settings("hasty") | {"rounds": {"deadline": 0.5}}, "bundle": "sha256:" + "0" * 64}
    answer = site.admin.post("/v1/federations", json=wrong)
    assert (answer.status_code, "at least a second" in answer.json()["error"]["problem"]) == (422, True)


def test_a_federation_is_started_paused_resumed_and_aborted(site: Site, bundle_digest: str) -> None:
    site.admin.post("/v1/federations", json={"settings": settings("moved"), "bundle": bundle_digest})

    def move(verb: str, **body: str) -> httpx.Response:
        return site.admin.post(f"/v1/federations/moved/{verb}", json=body)

    assert move("pause").status_code == 409
    states = [move(verb).json()["state"] for verb in ("start", "start", "pause", "resume")]
    assert states == ["running", "running", "paused", "running"]
    assert move("abort", reason="enough").json()["reason"] == "enough"
    assert move("start").status_code == 409
    assert site.admin.get("/v1/federations/moved").json()["state"] == "aborted"


def test_a_federation_shows_its_round_tasks_and_devices(site: Site) -> None:
    site.federation("shown")
    token = site.device("one", "shown")
    site.device("two", "shown")
    (task_id,) = site.open_round("one", federation="shown")
    with site.agent(token) as agent:
        agent.upload(task_id, site.update(task_id))
    base = "/v1/federations/shown"
    summary = site.admin.get(base).json()
    assert (summary["state"], summary["devices"], summary["updates"], summary["rounds"]) == ("running", 3, 1, 3)
    assert summary["round"]["number"] == 0
    assert [one["name"] for one in site.admin.get("/v1/federations").json()["federations"]].count("shown") == 1
    assert [one["number"] for one in site.admin.get(f"{base}/rounds").json()["rounds"]] == [0]
    assert site.admin.get(f"{base}/rounds/0").json()["state"] == "open"
    task = site.admin.get(f"{base}/tasks?round=0").json()["tasks"][-1]
    assert (task["device"], task["state"], task["result"]["samples"]) == ("one", "done", 10)
    assert site.admin.get(f"{base}/tasks?round=1").json()["tasks"] == []
    devices = site.admin.get(f"{base}/devices").json()["devices"]
    assert [(device["id"], device["state"], device["done"]) for device in devices] == [
        ("asleep-shown", "available", 0),
        ("one", "available", 1),
        ("two", "available", 0),
    ]
    assert "token_hash" not in str(devices)


def test_a_key_is_shown_once_lets_in_and_can_be_revoked(site: Site) -> None:
    base = "/v1/federations/digits/keys"
    made = site.admin.post(base, json={"label": "lab", "most_uses": 5, "expires_seconds": 3600})
    assert made.status_code == 201
    assert made.headers["Cache-Control"] == "no-store"
    key = made.json()
    assert key["expires_at"] > site.context.now()
    listed = [one for one in site.admin.get(base).json()["keys"] if one["id"] == key["id"]]
    assert listed[0]["label"] == "lab"
    assert listed[0]["uses"] == 0
    assert key["key"] not in str(site.admin.get(base).content)
    assert site.client(key["key"]).get("/v1/speed?bytes=1").status_code == 200
    assert site.admin.delete(f"{base}/{key['id']}").status_code == 204
    assert site.admin.delete(f"{base}/{key['id']}").status_code == 204
    assert site.client(key["key"]).get("/v1/speed?bytes=1").status_code == 403


def test_a_key_needs_nothing_but_its_federation(site: Site) -> None:
    made = site.admin.post("/v1/federations/digits/keys")
    assert made.status_code == 201
    assert made.json()["most_uses"] is None
    assert site.admin.post("/v1/federations/nobody/keys").status_code == 404


def test_the_global_model_is_weights_or_a_model_that_infers(site: Site) -> None:
    weights = site.admin.get("/v1/federations/digits/model")
    assert decode(weights.content, kind=BodyKind.WEIGHTS).tensors
    model = site.admin.get("/v1/federations/digits/model?format=onnx")
    onnx.checker.check_model(onnx.load_from_string(model.content))
    assert "digits.onnx" in model.headers["Content-Disposition"]
    assert site.admin.get("/v1/federations/digits/model?format=tflite").status_code == 422
    part = site.admin.get("/v1/federations/digits/model?format=mask&part=held")
    assert decode_mask(part.content, bundle().graph).digest == full_mask(bundle().graph).digest  # no round yet
    assert site.admin.get("/v1/federations/digits/model?part=best").status_code == 422


def test_the_model_of_a_device_that_had_no_task_is_not_there_yet(site: Site) -> None:
    site.device("fresh")
    answer = site.admin.get("/v1/federations/digits/devices/fresh/model")
    assert answer.status_code == 409
    assert answer.json()["error"]["fix"]


def test_an_address_that_no_device_could_use_makes_no_key(site: Site) -> None:
    before = len(site.admin.get("/v1/federations/digits/keys").json()["keys"])
    for address in ("http://127.0.0.1@example.org", "http://a\\@b", "https://", "https://host:port"):
        answer = site.admin.post("/v1/federations/digits/keys", json={"address": address})
        assert answer.status_code == 422, answer.text
    assert len(site.admin.get("/v1/federations/digits/keys").json()["keys"]) == before
    made = site.admin.post("/v1/federations/digits/keys", json={"address": "https://host:8443"}).json()
    assert made["join"].startswith(f"EDGEFL_JOIN_URI='https://host:8443/join#key={made['key']}&")
