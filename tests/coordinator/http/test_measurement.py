"""A client measures itself with what the coordinator serves, before it has enrolled, and joins with the result."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import load

from coordinator.federations.lifecycle import new_key
from coordinator.federations.measurement import Measurements
from device_runtime.profiler.cost_fit import MEMORY_TERMS, TIME_TERMS, CostSample, fit_cost
from edgefl.values import DeviceProfile, from_json, to_json
from tests.coordinator.fleet import running
from tests.coordinator.http.site import Site
from tests.values.samples import PROFILE

COST = to_json(PROFILE.cost)


@pytest.fixture(scope="module")
def key(site: Site) -> str:
    return new_key(site.context, "digits")[1]


def cases(site: Site, token: str) -> list[dict[str, Any]]:
    answer = site.client(token).get("/v1/measurement")
    assert answer.status_code == 200
    document = answer.json()
    assert (document["schema"], document["model"]) == ("edgefl.measurement/1", "small_cnn")
    found: list[dict[str, Any]] = document["cases"]
    return found


def step_seconds(site: Site, token: str, case: dict[str, Any]) -> float:
    """Time a step with nothing but onnxruntime and what the case names."""
    client = site.client(token)
    graph, weights = (client.get(f"/v1/measurement/{case[name]}").content for name in ("graph", "weights"))
    tensors = {entry["name"]: entry for entry in client.get(f"/v1/measurement/{case['submodel']}").json()["tensors"]}
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    arrays = {name: value for name, value in load(weights).items() if name in tensors}
    assert {name: list(array.shape) for name, array in arrays.items()} == {
        name: entry["shape"] for name, entry in tensors.items()
    }
    gradients = {output.name for output in session.get_outputs() if output.name.startswith("grad:")}
    trained = {f"grad:{name}" for name, entry in tensors.items() if entry["trained"] and entry["role"] != "statistic"}
    assert gradients == trained
    size, generator = case["batch_size"], np.random.default_rng(0)
    feeds = {
        "x": generator.standard_normal((size, 1, 8, 8), np.float32),
        "y": generator.integers(0, 10, size),
        **arrays,
    }
    wanted = {entry.name for entry in session.get_inputs()}
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        session.run(None, {name: value for name, value in feeds.items() if name in wanted})
        best = min(best, time.perf_counter() - began)
    return best


def test_a_client_measures_itself_with_a_join_key_and_enrols_with_the_result(site: Site, key: str) -> None:
    found = cases(site, key)
    work = [case["forward_multiply_adds"] + case["backward_multiply_adds"] for case in found]
    assert work == sorted(work)
    groups = [f"{case['graph']} {case['weights']}" for case in found]
    assert len(set(groups)) >= 6
    terms = {*TIME_TERMS, *MEMORY_TERMS}
    samples = [
        CostSample(group, {term: case[term] for term in terms}, step_seconds(site, key, case))
        for group, case in zip(groups, found, strict=True)
    ]
    peaks = [CostSample(one.group, one.work, 6e7 + 3.0 * one.work["activation_bytes"]) for one in samples]
    cost = to_json(fit_cost(samples, peaks, measured_on="small_cnn"))
    profile = to_json(PROFILE) | {"cost": cost}
    del profile["schema"]
    body = {"schema": "edgefl.enrolment/1", "enrolment_id": "measured", "profile": profile, "software": "a test"}
    answer = site.client(key).post("/v1/devices", json=body)
    assert answer.status_code == 201, answer.text
    again = site.client(answer.json()["token"]).put("/v1/devices/me/profile", json=to_json(PROFILE) | {"cost": cost})
    assert again.status_code == 204


def test_widths_cuts_and_batch_sizes_differ(site: Site, key: str) -> None:
    found = cases(site, key)
    assert {case["width"] for case in found} == {1.0, 0.6, 0.3}
    assert len({case["batch_size"] for case in found}) == 2
    ratios = [case["backward_multiply_adds"] / case["forward_multiply_adds"] for case in found]
    assert max(ratios) > 1.2 * min(ratios)  # so that the passes can be told apart


def test_a_device_finds_them_among_its_artifacts_and_can_resume(site: Site, key: str) -> None:
    case = cases(site, key)[0]
    whole = site.client(key).get(f"/v1/measurement/{case['graph']}").content
    device = site.client(site.device("measures-later"))
    assert device.get(f"/v1/artifacts/{case['graph']}").content == whole
    rest = site.client(key).get(f"/v1/measurement/{case['graph']}", headers={"Range": "bytes=100-"})
    assert (rest.status_code, rest.content) == (206, whole[100:])
    assert cases(site, site.device("measures-too"))[0] == case


def test_a_join_key_opens_nothing_else(site: Site, key: str) -> None:
    secret = site.keep(b"of a task")
    assert site.client(key).get(f"/v1/measurement/{secret}").status_code == 404
    assert site.client(key).get(f"/v1/artifacts/{secret}").status_code == 401


def test_every_worker_makes_the_same(site: Site, key: str) -> None:
    federation = site.context.store.federations.get("digits")
    assert federation is not None
    assert to_json(Measurements(site.context).of(federation).measurement)["cases"] == cases(site, key)


def test_it_is_made_once_and_holds_up_nobody_else(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    running(site.context, name="asked-at-once")
    secret, token = new_key(site.context, "asked-at-once")[1], site.device("polls-meanwhile")
    begun, go, made = threading.Event(), threading.Event(), []
    make = Measurements._make

    def slow(*args: Any) -> Any:
        made.append(1)
        begun.set()
        assert go.wait(30)
        return make(*args)

    monkeypatch.setattr(Measurements, "_make", slow)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(lambda: site.client(secret).get("/v1/measurement")) for _ in range(8)]
        try:
            assert begun.wait(30)
            assert site.client(token).post("/v1/tasks/next?wait=0").status_code == 200
        finally:
            go.set()
        assert {one.result().status_code for one in asked} == {200}
    assert len(made) == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"measurements": 1}, "cost.measurements' is 1"),
        ({"relative_error": 0}, "cost.relative_error' is 0"),
        ({name: 0 for name in COST if "seconds" in name}, "cost' predicts 0 s"),
    ],
)
def test_an_invented_cost_is_refused_with_the_reason(site: Site, key: str, changes: dict[str, Any], says: str) -> None:
    profile = to_json(PROFILE) | {"cost": COST | changes}
    assert from_json(DeviceProfile, profile)  # its form is valid
    inner = {name: value for name, value in profile.items() if name != "schema"}
    body = {"schema": "edgefl.enrolment/1", "enrolment_id": "invented", "profile": inner, "software": "a test"}
    device = site.client(site.device(f"invents-{len(says)}"))
    for answer in (
        site.client(key).post("/v1/devices", json=body),
        device.put("/v1/devices/me/profile", json=profile),
    ):
        assert answer.status_code == 422
        assert says in answer.json()["error"]["problem"]
        assert answer.json()["error"]["fix"]
