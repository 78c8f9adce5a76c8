"""One device in several federations: a home for each, one task at a time, limits for all together."""

import json
import multiprocessing
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from device_runtime.agent.agent import Agent, AgentSettings
from device_runtime.agent.agent_home import AgentHome, Identity, Usage
from device_runtime.agent.client import CoordinatorClient
from device_runtime.agent.device_homes import DeviceHomes
from device_runtime.agent.owner_policy import DeviceConditions, OwnerPolicy
from device_runtime.agent.shared_device import SharedUsage, TrainingTurn
from edgefl.errors import EdgeFLError
from edgefl.masks import full_mask
from edgefl.values import LocalWork, Reason
from tests.device_runtime.coordinator import KEY, Coordinator, tasks
from tests.device_runtime.federation import bundle, trainer
from tests.device_runtime.in_process_transport import InProcessTransport
from tests.values.samples import PROFILE

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = "2026-05-01"


def agent_of(device: Path, name: str, coordinator: Coordinator, **settings: Any) -> Agent:
    home = AgentHome(device / "federations" / name)
    agent = Agent(
        home,
        CoordinatorClient(InProcessTransport(coordinator.answer)),
        lambda device_id: trainer(home.checkpoints),
        settings=AgentSettings(least_wait=0.0, **settings),
        conditions=lambda: DeviceConditions(NOON),
        device=device,
    )
    agent.enrol(f"http://{name}", PROFILE, KEY)
    return agent


def with_a_task(**plan: Any) -> Coordinator:
    coordinator = Coordinator()
    tasks(coordinator, [full_mask(bundle().graph)], work=LocalWork(epochs=1, batch_size=64), **plan)
    return coordinator


def test_a_device_trains_one_task_at_a_time_and_asks_for_no_other_meanwhile(tmp_path: Path) -> None:
    one, two, stop = with_a_task(), with_a_task(), threading.Event()
    first, second = agent_of(tmp_path, "one", one), agent_of(tmp_path, "two", two)
    assert first.turn(stop) == second.turn(stop) == 0.0  # both got a task at the same time
    other = TrainingTurn(tmp_path)
    assert other.take("a third")
    assert (first.turn(stop), second.turn(stop)) == (1.0, 1.0)
    assert (one.results, one.refusals) == ({}, {})
    other.release()
    assert (first.turn(stop), second.turn(stop)) == (0.0, 0.0)
    assert set(one.results) == set(two.results) == {"task-1"}
    assert other.take("a third")
    asked = len(one.requests)
    assert first.turn(stop) == 1.0
    assert len(one.requests) == asked  # it would be selected, and could not begin


def test_a_task_whose_turn_comes_too_late_is_refused(tmp_path: Path) -> None:
    coordinator = with_a_task(deadline_seconds=1.0)
    agent, other, stop = agent_of(tmp_path, "one", coordinator), TrainingTurn(tmp_path), threading.Event()
    assert agent.turn(stop) == 0.0
    assert other.take("digits")
    while not coordinator.refusals:
        agent.turn(stop)
    refusal = coordinator.refusals["task-1"]
    assert (refusal.reason, refusal.message) == (Reason.DEADLINE, "the device trains for digits")


def test_a_day_of_energy_is_the_devices_whichever_federation_spent_it(tmp_path: Path) -> None:
    one, two, stop = with_a_task(), with_a_task(), threading.Event()
    policy = OwnerPolicy(joules_a_day=1e-6)
    first = agent_of(tmp_path, "one", one, policy=policy)
    second = agent_of(tmp_path, "two", two, policy=policy)
    for agent in (first, second):
        agent.turn(stop)
        agent.turn(stop)
    assert set(one.results) == {"task-1"}
    assert two.refusals["task-1"].reason is Reason.ENERGY


def test_a_day_of_traffic_is_the_devices_too(tmp_path: Path) -> None:
    policy = OwnerPolicy(bytes_a_day=10**9)
    first = agent_of(tmp_path, "one", with_a_task(), policy=policy)
    agent_of(tmp_path, "two", with_a_task(), policy=policy)
    for _ in range(2):
        first.turn(threading.Event())
    alone = SharedUsage(tmp_path).of(DAY).traffic_bytes
    assert alone > 10_000
    SharedUsage(tmp_path).add(DAY, joules=0.0, traffic_bytes=10**9)
    spent = agent_of(tmp_path, "one", Coordinator(), policy=policy)
    assert spent.turn(threading.Event()) == 600.0  # not even a poll


def _add(folder: str, times: int) -> None:
    usage = SharedUsage(Path(folder))
    for _ in range(times):
        usage.add(DAY, joules=1.0, traffic_bytes=10)


def test_nothing_that_processes_add_at_the_same_time_is_lost(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    adding = [context.Process(target=_add, args=(str(tmp_path), 25)) for _ in range(3)]
    for process in adding:
        process.start()
    for process in adding:
        process.join(60)
    assert SharedUsage(tmp_path).of(DAY) == Usage(DAY, 75.0, 750)
    assert SharedUsage(tmp_path).of("2026-05-02") == Usage("2026-05-02")


def test_usage_on_a_full_disk_is_remembered_until_it_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = SharedUsage(tmp_path)

    def full(*args: Any, **more: Any) -> None:
        raise OSError(28, "full")

    with monkeypatch.context() as patch:
        patch.setattr(AgentHome, "save_usage", full)
        usage.add(DAY, joules=2.0, traffic_bytes=5)
    assert usage.of(DAY) == Usage(DAY, 2.0, 5)
    usage.add(DAY, joules=1.0, traffic_bytes=1)
    assert SharedUsage(tmp_path).of(DAY) == Usage(DAY, 3.0, 6)


def join(place: Path, coordinator: str, federation: str | None = None) -> Path:
    AgentHome(place).save_identity(Identity(coordinator, "x", "device", "token", federation=federation))
    return place


def test_every_federation_has_a_home_of_its_own_and_finds_it_again(tmp_path: Path) -> None:
    homes = DeviceHomes(tmp_path / ".edgefl")
    assert homes.only() is None
    one = join(homes.of("https://10.0.0.5:8443", "digits"), "https://10.0.0.5:8443", "digits")
    assert one == tmp_path / ".edgefl/federations/10.0.0.5-8443-digits"
    assert homes.only() == one
    two = join(homes.of("https://10.0.0.5:8443", "letters"), "https://10.0.0.5:8443", "letters")
    three = join(homes.of("https://[::1]:9000", None), "https://[::1]:9000")
    assert len({one, two, three}) == 3
    assert homes.of("https://10.0.0.5:8443", "letters") == two
    assert homes.of("https://[::1]:9000", None) == three
    assert homes.of("https://[::1]:9000", "named-later") == three
    with pytest.raises(EdgeFLError, match=r"several federations of https://10.0.0.5:8443: .*digits.*letters"):
        homes.of("https://10.0.0.5:8443", None)
    with pytest.raises(EdgeFLError, match="is in several federations"):
        homes.only()


def test_a_home_that_never_joined_is_not_taken_for_another_federation(tmp_path: Path) -> None:
    homes = DeviceHomes(tmp_path)
    mistyped = homes.of("https://10.0.0.55", "digits")
    AgentHome(mistyped).save_identity(Identity("https://10.0.0.55", "x", federation="digits"))
    assert homes.only() == mistyped
    place = join(homes.of("https://10.0.0.5", "digits"), "https://10.0.0.5", "digits")
    assert homes.only() == place


def test_a_home_of_an_older_version_keeps_working(tmp_path: Path) -> None:
    homes = DeviceHomes(join(tmp_path / ".edgefl", "http://127.0.0.1:8000"))
    assert homes.of("http://127.0.0.1:8000", None) == tmp_path / ".edgefl"
    assert homes.only() == tmp_path / ".edgefl"
    assert homes.of("http://127.0.0.1:8001", None) == tmp_path / ".edgefl/federations/127.0.0.1-8001"


def test_names_that_look_the_same_as_folders_get_folders_of_their_own(tmp_path: Path) -> None:
    homes = DeviceHomes(tmp_path)
    one = join(homes.of("https://a:1", "x y"), "https://a:1", "x y")
    assert homes.of("https://a:1", "x/y") == one.with_name(f"{one.name}-2")
    assert homes.of("https://a:1", "../../up").parent == one.parent


def test_the_turn_says_who_has_it(tmp_path: Path) -> None:
    turn, other = TrainingTurn(tmp_path), TrainingTurn(tmp_path)
    assert other.is_free()
    assert other.holder() == "another federation"
    assert turn.take("digits")
    assert turn.take("digits")
    assert turn.is_free()  # for its holder
    assert not other.take("letters")
    assert not other.is_free()
    assert other.holder() == "digits"
    (tmp_path / "training.lock").write_text(json.dumps(["odd"]))
    assert other.holder() == "another federation"
    turn.release()
    assert other.take("letters")
