"""ExecuTorch is measured with the programs of the coordinator's own model, as far as it has enough of them."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from coordinator.federations.lifecycle import create, new_key
from device_runtime.agent.client import CoordinatorClient, RejectedError
from device_runtime.agent.transport import GarbledError, HttpTransport, Reply, Request, UnreachableError
from device_runtime.profiler import ProfileRequest
from device_runtime.profiler.cases import synthetic_weights
from device_runtime.profiler.executorch_cases import program_cases
from device_runtime.profiler.federation_programs import (
    FederationPrograms,
    download_programs,
    or_built_in,
    with_programs,
)
from device_runtime.profiler.reference_models import reference_bundles
from edgefl.artifacts.bundle import INFER, TRAIN, WEIGHTS, Bundle, pack_bundle
from edgefl.cli.main import main
from edgefl.errors import EdgeFLError
from edgefl.masks import full_mask
from edgefl.values import DeviceProfile, Program, digest_of, dumps, loads
from edgefl.wire import encode_weights
from tests.coordinator.fleet import settings_of
from tests.coordinator.http.site import Site, serving
from tests.device_runtime.in_process_transport import InProcessTransport
from tests.values.samples import MEASUREMENT


def perceptron() -> Bundle:
    """The built-in perceptron and its programs, with what a federation needs beside them."""
    (stored,) = [bundle for bundle in reference_bundles() if bundle.manifest.model == "mlp"]
    whole = full_mask(stored.graph)
    weights = encode_weights(synthetic_weights(whole), {"model": stored.graph.digest})
    files = {**stored.files, WEIGHTS: weights, INFER: stored.files[TRAIN]}
    digests = {name: digest_of(data) for name, data in files.items()}
    return Bundle(replace(stored.manifest, files=digests), stored.graph, files)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("coordinator")) as running:
        running.federation()
        create(running.context, settings_of(name="perceptron"), pack_bundle(perceptron()))
        yield running


@pytest.fixture
def key(site: Site) -> str:
    return new_key(site.context, "perceptron")[1]


def downloaded(site: Site, key: str, **limits: Any) -> FederationPrograms:
    with closing(HttpTransport(site.url)) as transport:
        return download_programs(CoordinatorClient(transport), key, **limits)


def request(site: Site, key: str | None, **changes: Any) -> ProfileRequest:
    return ProfileRequest(**({"engine": "executorch", "coordinator": site.url, "key": key} | changes))


def test_the_holder_of_a_key_gets_the_programs_of_the_federation(site: Site, key: str) -> None:
    found = {dumps_of(case.program.program): case for case in downloaded(site, key).cases()}
    expected = {dumps_of(case.program.program): case for case in program_cases() if case.program.model == "mlp"}
    assert found.keys() == expected.keys()
    for said, case in found.items():
        assert case.program.data == expected[said].program.data
        assert case.program.sample == expected[said].program.sample
        assert (case.mask.digest, case.batch) == (expected[said].mask.digest, expected[said].batch)


def dumps_of(program: Program | None) -> str:
    assert program is not None
    return dumps(program)


def test_the_model_graph_is_offered_under_the_digest_that_programs_name(site: Site, key: str) -> None:
    graph = perceptron().graph
    assert site.client(key).get(f"/v1/measurement/{graph.digest}").content == dumps(graph).encode()
    other = new_key(site.context, "digits")[1]
    assert site.client(other).get(f"/v1/measurement/{graph.digest}").status_code == 404


def test_a_device_is_measured_with_the_federations_own_programs(
    site: Site, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["profile", "--engine", "executorch", "--threads", "1", "--seconds", "4", "--json"]
    assert main([*words, "--coordinator", site.url, "--key", key]) == 0
    shown = capsys.readouterr()
    profile = loads(DeviceProfile, shown.out)
    assert profile.engine.startswith("executorch")
    assert profile.cost.measured_on == "mlp"
    assert profile.cost.measurements >= 6
    assert profile.download_bytes_per_second is not None
    assert not {"built-in", "package"} & set(shown.err.split())


def test_a_federation_without_programs_is_noted_and_the_built_in_ones_are_measured(site: Site) -> None:
    notes: list[str] = []
    found = with_programs(request(site, new_key(site.context, "digits")[1]), notes.append)
    assert found.programs is None
    (note,) = notes
    assert "none of at least 6 training programs; the programs that come with the package were measured" in note


@pytest.mark.parametrize("changes", [{"engine": "onnx"}, {"coordinator": None}, {"bundles": ["a bundle"]}])
def test_nothing_is_downloaded_that_is_not_measured(site: Site, key: str, changes: dict[str, object]) -> None:
    asked = request(site, key, **changes)
    assert with_programs(asked, pytest.fail) is asked


@pytest.mark.parametrize("secret", [None, "edgefl-key-wrong"])
def test_a_wrong_key_is_noted(site: Site, secret: str | None) -> None:
    notes: list[str] = []
    assert with_programs(request(site, secret), notes.append).programs is None
    assert notes


def test_a_coordinator_from_before_programs_answers_with_graphs(site: Site) -> None:
    client = CoordinatorClient(InProcessTransport(lambda asked: Reply(200, {}, dumps(MEASUREMENT).encode())))
    with pytest.raises(EdgeFLError, match="none of at least 6"):
        download_programs(client, "key")


def test_downloads_end_at_the_limit_of_their_bytes(site: Site, key: str) -> None:
    half = sum(program.size for program in perceptron().manifest.programs) // 2
    with pytest.raises(EdgeFLError, match=r"it has [1-5] of at least 6"):
        downloaded(site, key, most_bytes=half)


def test_downloads_end_at_the_limit_of_their_time(site: Site, key: str) -> None:
    began, asked = time.monotonic(), iter(range(100))

    def clock() -> float:  # twenty seconds pass with each look
        return began + 20 * next(asked)

    with pytest.raises(EdgeFLError, match="of at least 6"):
        downloaded(site, key, clock=clock)


def test_what_is_too_large_or_has_another_digest_is_not_taken() -> None:
    content = b"0123456789"

    def answer(asked: Request) -> Reply:
        return Reply(200, {}, content)

    client = CoordinatorClient(InProcessTransport(answer))
    digest = digest_of(content)
    assert client.measurement_artifact(digest, most_bytes=10, seconds=1) == content
    with pytest.raises(RejectedError, match="more than 9 bytes"):
        client.measurement_artifact(digest, most_bytes=9, seconds=1)
    with pytest.raises(GarbledError, match="is not sha256:"):
        client.measurement_artifact(digest_of(b"other"), most_bytes=10, seconds=1)


def test_programs_that_cannot_be_measured_here_give_way_to_the_built_in_ones(site: Site, key: str) -> None:
    tried: list[bool] = []
    notes: list[str] = []

    def measured(asked: ProfileRequest) -> str:
        tried.append(asked.programs is not None)
        if asked.programs is not None:
            raise EdgeFLError("the program was compiled with ExecuTorch 9", fix="Install that version.")
        return "a profile"

    asked = with_programs(request(site, key), notes.append)
    assert or_built_in(asked, measured, notes.append) == "a profile"
    assert tried == [True, False]
    assert "compiled with ExecuTorch 9" in notes[0]
    with pytest.raises(UnreachableError):
        or_built_in(replace(asked, programs=None), unreachable, notes.append)


def unreachable(asked: ProfileRequest) -> str:
    raise UnreachableError("nobody", fix="none")
