"""What an agent asks before it joins, and what it tells about its software."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from device_runtime.agent.agent_home import AgentHome
from device_runtime.agent.client import BusyError, CoordinatorClient, UnknownDeviceError
from device_runtime.agent.own_capabilities import own_capabilities
from device_runtime.agent.sample_check import federation_sample
from device_runtime.agent.transport import Reply, UnreachableError
from edgefl import __version__
from edgefl.local_rules import RULES
from edgefl.values import GraphFormat, dumps
from tests.device_runtime.agent.test_agent import agent_of, joined
from tests.device_runtime.coordinator import KEY, Coordinator
from tests.device_runtime.in_process_transport import InProcessTransport
from tests.values.samples import CAPABILITIES, PROFILE, SAMPLE

RULES_PAGE = Path(__file__).parents[3] / "docs" / "rules.md"


def client_of(coordinator: Coordinator) -> CoordinatorClient:
    return CoordinatorClient(InProcessTransport(coordinator.answer))


def test_a_new_device_asks_with_its_key_and_keeps_the_answer(tmp_path: Path) -> None:
    home, coordinator = AgentHome(tmp_path / "home"), Coordinator(sample=SAMPLE)
    assert federation_sample(home, client_of(coordinator), KEY) == SAMPLE
    assert home.sample() == SAMPLE


def test_a_device_that_has_joined_asks_with_its_token_and_goes_on_without_an_answer(tmp_path: Path) -> None:
    coordinator = Coordinator(sample=SAMPLE)
    joined(tmp_path / "home", coordinator)
    home = AgentHome(tmp_path / "home")
    assert federation_sample(home, client_of(coordinator), None) == SAMPLE
    coordinator.sample = Reply(503)
    assert federation_sample(home, client_of(coordinator), None) == SAMPLE
    coordinator.sample = None
    assert federation_sample(home, client_of(coordinator), None) is None
    assert home.sample() is None


def test_a_token_that_is_no_longer_known_is_replaced_by_the_key(tmp_path: Path) -> None:
    coordinator = Coordinator(sample=SAMPLE)
    joined(tmp_path / "home", coordinator)
    home = AgentHome(tmp_path / "home")
    identity = home.identity()
    assert identity is not None
    home.save_identity(replace(identity, token="revoked"))
    assert federation_sample(home, client_of(coordinator), KEY) == SAMPLE
    with pytest.raises(UnknownDeviceError):
        federation_sample(home, client_of(coordinator), None)


def test_a_coordinator_from_before_the_question_means_no_check(tmp_path: Path) -> None:
    assert federation_sample(AgentHome(tmp_path / "home"), client_of(Coordinator()), KEY) is None


LARGE = json.loads(dumps(SAMPLE))


@pytest.mark.parametrize(
    "body",
    [
        b"<html>Please log in</html>",
        b"[" * 100_000,
        b"{}",
        json.dumps(LARGE | {"shape": [2**40, 2**40]}).encode(),
        json.dumps(LARGE | {"classes": 10**9, "class_names": None}).encode(),
        json.dumps(LARGE | {"class_names": ["x" * 200] * 60_000, "classes": 60_000}).encode(),
        json.dumps(LARGE | {"example": LARGE["example"] | {"raw": "A" * 10**7}}).encode(),
        json.dumps(LARGE | {"normalisation": {"mean": [float("nan")], "std": [1.0]}}).encode(),
        json.dumps(LARGE | {"normalisation": {"mean": [0.0], "std": [0.0]}}).encode(),
    ],
    ids=lambda body: body[:20].decode(),
)
def test_a_hostile_description_is_no_answer(tmp_path: Path, body: bytes) -> None:
    home = AgentHome(tmp_path / "home")
    with pytest.raises(BusyError, match="the coordinator's answer is not valid"):
        federation_sample(home, client_of(Coordinator(sample=Reply(200, {}, body))), KEY)
    assert home.sample() is None


def test_a_new_device_without_an_answer_does_not_join(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError):
        federation_sample(AgentHome(tmp_path / "home"), client_of(Coordinator(sample=Reply(502))), KEY)


def test_this_software_has_every_rule_and_codec() -> None:
    can = own_capabilities()
    assert (can.client.name, can.client.version) == ("edgefl-python", __version__)
    added = {
        "sgd.sensitivity",
        "masked_noise.sensitivity",
        "masked_noise.distribution",
        "pruned_noise.distribution",
        "prune_regrow.values_only",
    }
    assert set(can.rules) == {*RULES, *added}
    assert all(f"`{name}`" in RULES_PAGE.read_text() for name in added), "a client finds it on the page of the rules"
    assert set(can.codecs) == {"dense", "slice", "sparse", "bits", "counts"}
    assert [engine.format for engine in can.engines] == [GraphFormat.ONNX]
    assert can.batch_sizes is None


def test_capabilities_are_told_once_and_again_when_they_have_changed(tmp_path: Path) -> None:
    coordinator = Coordinator()
    for told in (
        CAPABILITIES,
        CAPABILITIES,
        replace(CAPABILITIES, rules=("sgd",)),
        replace(CAPABILITIES, rules=("sgd",)),
    ):
        agent_of(tmp_path / "home", coordinator).enrol("http://here", PROFILE, KEY, capabilities=told)
    (enrolment,) = coordinator.enrolments.values()
    assert enrolment.capabilities == CAPABILITIES
    assert coordinator.capabilities == [replace(CAPABILITIES, rules=("sgd",))]


def test_a_coordinator_from_before_capabilities_takes_a_device_without_them(tmp_path: Path) -> None:
    coordinator = Coordinator(is_old=True)
    agent_of(tmp_path / "home", coordinator).enrol("http://here", PROFILE, KEY, capabilities=CAPABILITIES)
    (enrolment,) = coordinator.enrolments.values()
    assert enrolment.capabilities is None
    coordinator.is_old = False  # it was upgraded
    agent_of(tmp_path / "home", coordinator).enrol("http://here", PROFILE, KEY, capabilities=CAPABILITIES)
    assert coordinator.capabilities == [CAPABILITIES]


def test_samples_are_told_with_the_enrolment_and_again_at_every_start(tmp_path: Path) -> None:
    coordinator = Coordinator()
    for told in (480, 480, 500, None):
        agent_of(tmp_path / "home", coordinator).enrol("http://here", PROFILE, KEY, samples=told)
    (enrolment,) = coordinator.enrolments.values()
    assert enrolment.samples == 480
    assert coordinator.samples == [480, 500], "a result may have said another number since"


def test_a_coordinator_from_before_both_takes_a_device_without_them_and_is_told_when_it_was_upgraded(
    tmp_path: Path,
) -> None:
    coordinator = Coordinator(is_old=True)

    def start() -> None:
        agent = agent_of(tmp_path / "home", coordinator)
        agent.enrol("http://here", PROFILE, KEY, capabilities=CAPABILITIES, samples=480)

    start()
    (enrolment,) = coordinator.enrolments.values()
    assert (enrolment.capabilities, enrolment.samples) == (None, None)
    coordinator.is_old = False
    start()
    assert (coordinator.capabilities, coordinator.samples) == ([CAPABILITIES], [480])
