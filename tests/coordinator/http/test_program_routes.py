"""Programs over HTTP: who may see and send them, leases, uploads that are checked, and what garbage does not do."""

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from coordinator.federations.lifecycle import new_key
from coordinator.federations.tokens import OperatorRole
from coordinator.http.server_settings import ServerLimits
from edgefl.artifacts.bundle import unpack_bundle
from edgefl.values import Program, ProgramSpec, digest_of, dumps, to_json
from tests.coordinator.http.site import Site, serving
from tests.coordinator.programs import file_of, ladder, program_of, specs_of
from tests.device_runtime.federation import bundle

BASE = "/v1/federations/digits/programs"
FULL, HALF, QUARTER = specs_of((1.0, 0.5, 0.25), batch=32, cuts=["0"])


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    limits = ServerLimits(program_bytes=1000, failures_burst=1000)
    with serving(tmp_path_factory.mktemp("coordinator"), limits) as running:
        running.federation()
        yield running


def want(site: Site, *specs: ProgramSpec) -> None:
    federation = site.context.store.federations.get("digits")
    assert federation is not None
    site.context.programs.want(federation, specs)


def take(site: Site, worker: str = "w1") -> dict[str, Any] | None:
    answer = site.admin.post(f"{BASE}/take", json={"worker": worker})
    assert answer.status_code in (200, 204), answer.text
    return answer.json() if answer.status_code == 200 else None


def send(site: Site, program: Program, file: bytes | None = None, worker: str = "w1") -> httpx.Response:
    if file is not None:
        assert site.admin.post("/v1/programs", content=file).status_code == 201
    path = f"{BASE}/{program.spec.key}?worker={worker}"
    return site.admin.put(path, content=dumps(program))


def states(site: Site) -> dict[str, str]:
    return {one["key"]: one["state"] for one in site.admin.get(BASE).json()["programs"]}


def test_a_worker_takes_what_is_wanted_and_delivers_it(site: Site) -> None:
    want(site, HALF)
    leased = take(site)
    assert leased is not None
    assert (leased["key"], leased["rung"]) == (HALF.key, "0.5 all layers, batch 32")
    assert leased["spec"] == to_json(HALF)
    assert take(site, "w2") is None
    assert states(site) == {HALF.key: "compiling"}
    renewed = site.admin.put(f"{BASE}/{HALF.key}/lease", json={"worker": "w1"})
    assert renewed.status_code == 204
    answer = send(site, program_of(HALF), file_of(HALF))
    assert answer.status_code == 201, answer.text
    (shown,) = site.admin.get(BASE).json()["programs"]
    expected = {"state": "ready", "worker": "w1", "size": len(file_of(HALF)), "made_with": "executorch 1.4.1"}
    assert shown == shown | expected
    assert take(site) is None


def test_devices_can_download_what_was_delivered_and_nothing_before(site: Site) -> None:
    token = site.device("pi")
    file, document = file_of(HALF), dumps(program_of(HALF)).encode()
    assert site.admin.post("/v1/programs", content=file).status_code == 201
    assert site.client(token).get(f"/v1/artifacts/{digest_of(file)}").status_code == 404
    send(site, program_of(HALF))
    for body in (file, document):
        assert site.client(token).get(f"/v1/artifacts/{digest_of(body)}").content == body


def test_the_first_upload_of_a_program_stays(site: Site) -> None:
    want(site, HALF)
    take(site)
    assert send(site, program_of(HALF, "late"), file_of(HALF, "late"), worker="late").status_code == 201
    again = send(site, program_of(HALF, "late"), file_of(HALF, "late"), worker="late")
    other = send(site, program_of(HALF, "w1"), file_of(HALF, "w1"))
    assert [again.status_code, other.status_code] == [200, 200]
    assert other.json()["worker"] == "late"
    assert site.context.store.programs.ready("digits") == [dumps(program_of(HALF, "late"))]


def test_neither_devices_nor_viewers_nor_strangers_reach_what_workers_use(site: Site) -> None:
    want(site, HALF)
    key = f"{BASE}/{HALF.key}"
    routes = [
        ("POST", f"{BASE}/take"),
        ("POST", f"{BASE}/retry"),
        ("PUT", f"{key}/lease"),
        ("DELETE", f"{key}/lease?worker=w1"),
        ("POST", f"{key}/failure"),
        ("PUT", key),
        ("POST", "/v1/programs"),
        ("GET", "/v1/federations/digits/bundle"),
    ]
    callers = {site.device("pi"): 401, site.tokens[OperatorRole.VIEWER]: 403, "nobody": 401}
    for token, status in callers.items():
        for method, path in routes:
            answer = site.client(token).request(method, path, content=b"{}")
            assert answer.status_code == status, (method, path, answer.text)
    assert site.client(site.device("pi-2")).get(BASE).status_code == 401
    assert site.client(site.tokens[OperatorRole.VIEWER]).get(BASE).status_code == 200


def test_what_does_not_fit_the_model_is_refused(site: Site) -> None:
    good, file = program_of(HALF), file_of(HALF)
    site.admin.post("/v1/programs", content=file)
    lacking = replace(good, outputs=tuple(name for name in good.outputs if name != "grad:0.weight"))
    bad = {
        "lack 'grad:0.weight'": lacking,
        "lack '0.weight'": replace(good, inputs=tuple(name for name in good.inputs if name != "0.weight")),
        "have 'spy', which the model does not": replace(good, inputs=(*good.inputs, "spy")),
        "have equal names": replace(good, inputs=(*good.inputs, "x")),
        "is for another model": replace(good, spec=replace(HALF, model=digest_of(b"other"))),
        "'0' does not fit the model": replace(good, spec=replace(HALF, widths=dict(HALF.widths) | {"0": 1000})),
        "there is no file": replace(good, pte=digest_of(b"missing")),
        "bytes, not": replace(good, size=good.size + 1),
    }
    for text, program in bad.items():
        answer = send(site, program)
        assert 400 <= answer.status_code < 500, answer.text
        assert text in answer.json()["error"]["problem"]
    other = site.admin.put(f"{BASE}/{FULL.key}", content=dumps(good))
    assert other.status_code == 400
    assert states(site) == {}
    assert send(site, good).status_code == 201


def test_a_file_that_is_no_program_or_too_large_is_not_stored(site: Site) -> None:
    assert site.admin.post("/v1/programs", content=b"garbage" * 10).status_code == 400
    assert site.admin.post("/v1/programs", content=b"").status_code == 400
    assert site.admin.post("/v1/programs", content=file_of(HALF) + b"x" * 1000).status_code == 413
    assert site.context.blobs.size(digest_of(b"garbage" * 10)) is None


def test_an_artifact_that_is_no_program_cannot_be_passed_off_as_one(site: Site) -> None:
    body = b"the weights of somebody"
    site.keep(body, "weights")
    assert send(site, replace(program_of(HALF), pte=digest_of(body), size=len(body))).status_code == 400


def test_after_three_failures_operators_see_the_reason_and_can_retry(site: Site) -> None:
    want(site, HALF)
    for _ in range(3):
        assert take(site) is not None
        said = {"worker": "w1", "reason": "aten.foo is not supported"}
        assert site.admin.post(f"{BASE}/{HALF.key}/failure", json=said).status_code == 204
    assert take(site) is None
    (shown,) = site.admin.get(BASE).json()["programs"]
    assert (shown["state"], shown["tries"], shown["reason"]) == ("failed", 3, "aten.foo is not supported")
    assert site.admin.post(f"{BASE}/retry").json() == {"programs": 1}
    assert take(site) is not None


def test_a_program_that_is_no_good_is_compiled_again(site: Site) -> None:
    send(site, program_of(HALF, "bad"), file_of(HALF, "bad"))
    assert site.admin.post(f"{BASE}/retry", json={"key": HALF.key}).json() == {"programs": 1}
    assert take(site) is not None
    assert send(site, program_of(HALF, "good"), file_of(HALF, "good")).status_code == 201


def test_a_lease_belongs_to_one_worker(site: Site) -> None:
    want(site, HALF)
    take(site)
    assert site.admin.put(f"{BASE}/{HALF.key}/lease", json={"worker": "w2"}).status_code == 409
    site.admin.delete(f"{BASE}/{HALF.key}/lease", params={"worker": "w2"})
    assert states(site) == {HALF.key: "compiling"}
    site.admin.delete(f"{BASE}/{HALF.key}/lease", params={"worker": "w1"})
    assert states(site) == {HALF.key: "wanted"}


def test_what_workers_do_is_in_the_audit_log(site: Site) -> None:
    site.admin.get("/v1/federations/digits/bundle")
    send(site, program_of(HALF), file_of(HALF))
    actions = [entry["action"] for entry in site.admin.get("/v1/audit").json()["entries"]]
    assert actions[-3:] == ["bundle.download", "program.file", "program.upload"]


def test_a_worker_gets_the_bundle(site: Site) -> None:
    answer = site.admin.get("/v1/federations/digits/bundle")
    assert unpack_bundle(io.BytesIO(answer.content).read()).graph.digest == bundle().graph.digest


def test_another_federation_of_the_same_model_gets_what_there_is(site: Site) -> None:
    send(site, program_of(HALF), file_of(HALF))
    site.federation("other")
    token = site.device("pi-o", "other")
    federation = site.context.store.federations.get("other")
    assert federation is not None
    site.context.programs.want(federation, [HALF, QUARTER])
    shown = site.admin.get("/v1/federations/other/programs").json()["programs"]
    assert {one["key"]: one["state"] for one in shown} == {HALF.key: "ready", QUARTER.key: "wanted"}
    assert site.client(token).get(f"/v1/artifacts/{digest_of(file_of(HALF))}").content == file_of(HALF)


def test_programs_are_listed_by_their_rungs(site: Site) -> None:
    own = ladder()
    want(site, own.inference_spec(own.widths[0.5], 32), FULL, HALF)
    rungs = [(one["role"], one["rung"]) for one in site.admin.get(BASE).json()["programs"]]
    assert rungs == [
        ("train", "0.5 all layers, batch 32"),
        ("train", "1 all layers, batch 32"),
        ("infer", "0.5 to predict, batch 32"),
    ]


def test_a_joiner_measures_itself_with_programs_as_far_as_there_are_any(site: Site) -> None:
    joiner = site.client(new_key(site.context, "digits")[1])
    assert joiner.get("/v1/measurement?format=executorch").status_code == 404
    for spec in (FULL, HALF):
        send(site, program_of(spec), file_of(spec))
    cases = joiner.get("/v1/measurement?format=executorch").json()["cases"]
    documents = {dumps(program_of(spec)).encode() for spec in (FULL, HALF)}
    assert {joiner.get(f"/v1/measurement/{case['program']}").content for case in cases} == documents
    assert joiner.get(f"/v1/measurement/{digest_of(file_of(FULL))}").content == file_of(FULL)
    assert "program" not in {
        name for case in joiner.get("/v1/measurement").json()["cases"] for name in case if case[name]
    }
    assert joiner.get(f"/v1/measurement/{digest_of(b'other')}").status_code == 404
