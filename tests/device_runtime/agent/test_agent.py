"""A whole agent in one process, against a coordinator that keeps count."""

import itertools
import os
import random
import shutil
import stat
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from device_runtime.agent.agent import Agent, AgentSettings
from device_runtime.agent.agent_home import AgentHome, Usage
from device_runtime.agent.backoff import Backoff
from device_runtime.agent.client import CoordinatorClient, RejectedError, UnknownDeviceError
from device_runtime.agent.device_clock import DeviceClock
from device_runtime.agent.owner_policy import DeviceConditions, OwnerPolicy, parse_hours
from device_runtime.agent.traffic import TrafficSpentError
from device_runtime.agent.transport import Reply, Request, Transport, UnreachableError
from device_runtime.local_data import LocalData
from device_runtime.personal_model import load_personal
from edgefl.artifacts.artifact_store import write_atomically
from edgefl.artifacts.submodel import bundle_weights
from edgefl.data import Dataset, Samples
from edgefl.errors import EdgeFLError
from edgefl.local_rules.submodel_channels import prunable_groups
from edgefl.masks import full_mask, leading_channels, random_channels
from edgefl.values import Assignment, LocalWork, Prediction, Reason, RuleSettings, ThermalStatus, dumps
from edgefl.wire import decode_result, encode_mask, encode_weights
from tests.device_runtime.coordinator import DEVICE, KEY, TOKEN, Coordinator, tasks
from tests.device_runtime.faulty_transport import Fault, FaultyTransport
from tests.device_runtime.federation import bundle, local_data, task_of, trainer
from tests.device_runtime.in_process_transport import InProcessTransport
from tests.values.samples import PROFILE

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
QUICK = LocalWork(epochs=2, batch_size=64)
DATA = local_data(150)


def agent_of(
    home: Path, coordinator: Coordinator, *, faults: Iterator[Fault] | None = None, progress: Any = None, **changes: Any
) -> Agent:
    transport: Transport = InProcessTransport(coordinator.answer)
    if faults is not None:
        transport = FaultyTransport(transport, faults)
    hooks = {} if progress is None else {"progress": progress}
    place = AgentHome(home)
    settings: dict[str, Any] = {
        "backoff": Backoff(0.0005, 0.001, random.Random(0)),
        "conditions": lambda: DeviceConditions(NOON),
    } | changes
    return Agent(
        place, CoordinatorClient(transport), lambda name: trainer(place.checkpoints, DATA, **hooks), **settings
    )


def joined(home: Path, coordinator: Coordinator, **changes: Any) -> Agent:
    agent = agent_of(home, coordinator, **changes)
    agent.enrol("http://here", PROFILE, KEY)
    return agent


def some_masks(count: int) -> list[Any]:
    generator = np.random.default_rng(count)
    return [random_channels(bundle().graph, 0.5, generator) for _ in range(count)]


def test_a_device_joins_trains_what_it_is_told_and_ends_with_the_federation(tmp_path: Path) -> None:
    coordinator = Coordinator()
    tasks(coordinator, [*some_masks(2), full_mask(bundle().graph)], work=QUICK)
    agent = joined(tmp_path, coordinator)
    agent.run(threading.Event())
    assert set(coordinator.results) == {"task-1", "task-2", "task-3"}
    assert agent.tasks == 3
    for plan in coordinator.plans:
        report = decode_result(coordinator.results[plan.task_id], bundle().graph)
        assert report.result.device_id == DEVICE
        assert report.mask == plan.mask
        assert report.result.telemetry.transfer.down_bytes > 1000
    assert load_personal(tmp_path / "personal").round == 3
    assert not (tmp_path / "task").exists()


def test_what_is_known_is_not_downloaded_again(tmp_path: Path) -> None:
    coordinator = Coordinator()
    mask = full_mask(bundle().graph)
    tasks(coordinator, [mask, mask], work=QUICK)
    joined(tmp_path, coordinator).run(threading.Event())
    wanted = {plan.weights for plan in coordinator.plans} | {plan.graph for plan in coordinator.plans}
    asked = [request.path.rpartition("/")[2] for request in coordinator.requests if "/artifacts/" in request.path]
    assert len(asked) == len(set(asked))
    assert wanted <= set(asked)


def test_joining_twice_is_joining_once_and_the_token_is_for_the_user_alone(tmp_path: Path) -> None:
    coordinator = Coordinator()
    broken = agent_of(tmp_path, coordinator, faults=iter([Fault.RESET_AFTER]))
    with pytest.raises(EdgeFLError, match="reset"):
        broken.enrol("http://here", PROFILE, KEY)
    identity = joined(tmp_path, coordinator)._home.identity()
    assert len(coordinator.enrolments) == 1
    assert identity is not None
    assert identity.token == TOKEN
    assert TOKEN not in repr(identity)
    assert stat.S_IMODE((tmp_path / "identity.json").stat().st_mode) == 0o600
    requests = len(coordinator.requests)
    agent_of(tmp_path, coordinator).enrol("http://here", PROFILE, None)
    assert len(coordinator.requests) == requests


def test_a_device_says_that_it_is_back_and_once_that_it_waits(tmp_path: Path) -> None:
    class Idle(Coordinator):
        polls = 0

        def answer(self, request: Request) -> Reply:
            self.polls += request.path.startswith("/v1/tasks/next")
            if self.polls <= 3 and request.path.startswith("/v1/tasks/next"):
                return Reply(200, body=dumps(Assignment(retry_seconds=0)).encode())
            return super().answer(request)

    coordinator, said = Idle(), list[str]()
    tasks(coordinator, some_masks(1), work=QUICK, rounds=2)
    agent = joined(tmp_path, coordinator, say=said.append, settings=AgentSettings(least_wait=0))
    agent.run(threading.Event())
    assert said[:3] == [f"joined http://here as {DEVICE}", "waiting for a task", "task task-1 of round 2"]
    said.clear()
    joined(tmp_path, coordinator, say=said.append)
    assert said == [f"back at http://here as {DEVICE}"]


def test_a_home_belongs_to_one_coordinator_and_one_agent(tmp_path: Path) -> None:
    coordinator = Coordinator()
    joined(tmp_path, coordinator)
    with pytest.raises(EdgeFLError, match="belongs to the coordinator http://here"):
        agent_of(tmp_path, coordinator).enrol("http://there", PROFILE, KEY)
    with pytest.raises(EdgeFLError, match="has not joined"):
        agent_of(tmp_path / "other", coordinator).enrol("http://here", PROFILE, None)
    with pytest.raises(UnknownDeviceError, match="join key is not known"):
        agent_of(tmp_path / "other", coordinator).enrol("http://here", PROFILE, "wrong")
    first, second = AgentHome(tmp_path), AgentHome(tmp_path)
    first.lock()
    with pytest.raises(EdgeFLError, match="another agent"):
        second.lock()


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.NONE])
def test_no_fault_of_the_network_changes_the_result(fault: Fault, tmp_path: Path) -> None:
    calm, rough = Coordinator(), Coordinator()
    for coordinator in (calm, rough):
        tasks(coordinator, some_masks(2), work=QUICK)
    joined(tmp_path / "calm", calm).run(threading.Event())
    faults = itertools.chain([Fault.NONE], itertools.islice(itertools.cycle([fault, fault, Fault.NONE]), 60))
    joined(tmp_path / "rough", rough, faults=faults).run(threading.Event())
    assert rough.conflicts == []
    assert set(rough.results) == set(calm.results)
    for task_id, body in calm.results.items():
        expected, found = (decode_result(data, bundle().graph) for data in (body, rough.results[task_id]))
        assert {n: p.array.tobytes() for n, p in found.tensors.items()} == {  # type: ignore[union-attr]
            n: p.array.tobytes()  # type: ignore[union-attr]
            for n, p in expected.tensors.items()
        }


def test_a_broken_download_goes_on_where_it_broke_off(tmp_path: Path) -> None:
    coordinator = Coordinator()
    plan = coordinator.offer(full_mask(bundle().graph), work=QUICK)
    whole = sum(len(coordinator.artifacts[digest]) for digest in coordinator.artifacts)
    # joining, poll, then every download is cut short once
    faults = itertools.chain([Fault.NONE] * 2, itertools.cycle([Fault.TRUNCATED, Fault.NONE]))
    joined(tmp_path, coordinator, faults=itertools.islice(faults, 12)).run(threading.Event())
    assert set(coordinator.results) == {plan.task_id}
    starts = [request.start for request in coordinator.requests if "/artifacts/" in request.path]
    assert sum(start > 0 for start in starts) >= 4
    assert coordinator.downloaded < 1.6 * whole


def test_a_damaged_cache_entry_is_never_used(tmp_path: Path) -> None:
    coordinator = Coordinator()
    mask = full_mask(bundle().graph)
    tasks(coordinator, [mask], work=QUICK)
    joined(tmp_path, coordinator).run(threading.Event())
    for path in (tmp_path / "cache" / "content").glob("??/*"):
        content = bytearray(path.read_bytes())
        content[len(content) // 3] ^= 4
        path.write_bytes(content)
    before = coordinator.downloaded
    coordinator.plans.append(replace(coordinator.plans[0], task_id="again"))
    agent_of(tmp_path, coordinator).enrol("http://here", PROFILE, None)
    again = joined(tmp_path, coordinator)
    again.run(threading.Event())
    assert coordinator.downloaded - before == before
    first, second = (decode_result(body, bundle().graph) for body in coordinator.results.values())
    assert first.result.loss == second.result.loss


def test_a_download_that_was_damaged_on_disk_before_it_got_its_name_begins_anew(tmp_path: Path) -> None:
    coordinator = Coordinator()
    plan = coordinator.offer(full_mask(bundle().graph), work=QUICK)
    for digest, change in ((plan.weights, b"x"), (plan.graph, b"")):
        whole = coordinator.artifacts[str(digest)]
        part = tmp_path / "cache" / "parts" / str(digest).removeprefix("sha256:")
        part.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(whole[: len(whole) - len(change)] + change)  # all of its bytes, one of them wrong; all right
    joined(tmp_path, coordinator).run(threading.Event())
    assert set(coordinator.results) == {plan.task_id}
    asked = [request.path for request in coordinator.requests if str(plan.graph) in request.path]
    assert asked == []


def test_the_cache_keeps_to_its_limit(tmp_path: Path) -> None:
    coordinator = Coordinator()
    tasks(coordinator, some_masks(4), work=LocalWork(epochs=1, batch_size=64, most_steps=1))
    limit = 80_000
    joined(tmp_path, coordinator, settings=AgentSettings(cache_bytes=limit)).run(threading.Event())
    assert len(coordinator.results) == 4
    kept = sum(path.stat().st_size for path in (tmp_path / "cache" / "content").glob("??/*"))
    assert 0 < kept <= limit


def refusal_of(
    tmp_path: Path, conditions: DeviceConditions | None = None, policy: OwnerPolicy | None = None, **plan: Any
) -> Any:
    coordinator = Coordinator()
    tasks(coordinator, some_masks(1), **({"work": QUICK} | plan))
    settings = AgentSettings(policy=policy or OwnerPolicy(), least_wait=0.0, after_objection=0.0)
    agent = joined(tmp_path, coordinator, settings=settings, conditions=lambda: conditions or DeviceConditions(NOON))
    agent.run(threading.Event())
    assert not coordinator.results
    return coordinator.refusals["task-1"]


@pytest.mark.parametrize(
    ("policy", "conditions", "reason"),
    [
        (OwnerPolicy(mains_only=True), DeviceConditions(NOON, plugged=False), Reason.POWER),
        (OwnerPolicy(mains_only=True), DeviceConditions(NOON), Reason.POWER),
        (OwnerPolicy(below_celsius=70), DeviceConditions(NOON, celsius=70.5), Reason.TEMPERATURE),
        (OwnerPolicy(unmetered_only=True), DeviceConditions(NOON, metered=True), Reason.METERED),
        (OwnerPolicy(unmetered_only=True), DeviceConditions(NOON), Reason.METERED),
        (OwnerPolicy(outside_battery_saver=True), DeviceConditions(NOON, battery_saver=True), Reason.BATTERY_SAVER),
        (
            OwnerPolicy(below_status=ThermalStatus.SEVERE),
            DeviceConditions(NOON, thermal_status=ThermalStatus.CRITICAL),
            Reason.THERMAL,
        ),
        (OwnerPolicy(hours=parse_hours("22-6")), DeviceConditions(NOON), Reason.HOURS),
        (OwnerPolicy(joules_a_day=100), DeviceConditions(NOON), Reason.ENERGY),
        (OwnerPolicy(memory_bytes=2**20), DeviceConditions(NOON), Reason.MEMORY),
        (OwnerPolicy(), DeviceConditions(NOON, free_bytes=2**20), Reason.MEMORY),
    ],
)
def test_what_the_owner_forbids_is_refused_with_its_reason(
    policy: OwnerPolicy, conditions: DeviceConditions, reason: Reason, tmp_path: Path
) -> None:
    AgentHome(tmp_path).save_usage(Usage("2026-05-01", joules=100.0, traffic_bytes=5))
    refusal = refusal_of(tmp_path, conditions, policy, predicted=Prediction(peak_bytes=2**30))
    assert refusal.reason is reason


def test_a_device_that_may_not_work_does_not_burn_through_a_rounds_tasks(tmp_path: Path) -> None:
    coordinator = Coordinator()
    tasks(coordinator, some_masks(2), work=QUICK)
    settings = AgentSettings(policy=OwnerPolicy(mains_only=True))
    agent = joined(tmp_path, coordinator, settings=settings, conditions=lambda: DeviceConditions(NOON, plugged=False))
    assert [agent.turn(threading.Event()) for _ in range(2)] == [0.0, 60.0]
    assert set(coordinator.refusals) == {"task-1"}


def test_what_the_owner_allows_is_done(tmp_path: Path) -> None:
    coordinator = Coordinator()
    tasks(coordinator, some_masks(1), work=QUICK)
    policy = OwnerPolicy(
        mains_only=True,
        unmetered_only=True,
        outside_battery_saver=True,
        below_celsius=70,
        below_status=ThermalStatus.SEVERE,
        hours=parse_hours("8:30-17"),
        joules_a_day=100,
        bytes_a_day=10**9,
    )
    conditions = DeviceConditions(NOON, plugged=True, celsius=50, metered=False, thermal_status=ThermalStatus.MODERATE)
    AgentHome(tmp_path).save_usage(Usage("2026-04-30", joules=1e6, traffic_bytes=10**12))
    agent = joined(tmp_path, coordinator, settings=AgentSettings(policy=policy), conditions=lambda: conditions)
    agent.run(threading.Event())
    assert len(coordinator.results) == 1


def test_a_day_without_bytes_left_is_a_day_without_polls(tmp_path: Path) -> None:
    coordinator, settings = Coordinator(), AgentSettings(policy=OwnerPolicy(bytes_a_day=1000))
    joined(tmp_path, coordinator)
    AgentHome(tmp_path).save_usage(Usage("2026-05-01", traffic_bytes=1000))
    agent = joined(tmp_path, coordinator, settings=settings)
    assert agent.turn(threading.Event()) == 600.0
    AgentHome(tmp_path / "new").save_usage(Usage("2026-05-01", traffic_bytes=1000))
    with pytest.raises(TrafficSpentError):
        joined(tmp_path / "new", coordinator, settings=settings)
    assert len(coordinator.requests) == 1  # joining, the day before


def test_hours_may_go_over_midnight() -> None:
    night = parse_hours("22:30-6")
    assert night == (time(22, 30), time(6))
    policy = OwnerPolicy(hours=night)
    for hour, allowed in ((22, False), (23, True), (3, True), (6, False), (12, False)):
        objection = policy.objection(DeviceConditions(datetime(2026, 1, 1, hour, tzinfo=UTC)), Usage())
        assert (objection is None) == allowed, hour
    for wrong in ("late", "25:99-3", "3", "-"):
        with pytest.raises(EdgeFLError, match="are not valid hours"):
            parse_hours(wrong)


def test_a_task_that_fails_is_refused_and_the_next_one_done(tmp_path: Path) -> None:
    coordinator = Coordinator()
    wrong = RuleSettings(name="sgd", settings={"learning_rate": 1e30})
    coordinator.offer(full_mask(bundle().graph), task_id="diverges", rule=wrong, work=QUICK)
    coordinator.offer(full_mask(bundle().graph), task_id="unknown", rule=RuleSettings(name="alchemy"), work=QUICK)
    lost = coordinator.offer(leading_channels(bundle().graph, 0.25), task_id="lost", work=QUICK)
    coordinator.offer(full_mask(bundle().graph), task_id="good", work=QUICK)
    del coordinator.artifacts[str(lost.weights)]
    joined(tmp_path, coordinator).run(threading.Event())
    assert set(coordinator.results) == {"good"}
    reasons = {task_id: refusal.reason for task_id, refusal in coordinator.refusals.items()}
    assert reasons == {"diverges": Reason.DIVERGED, "unknown": Reason.UNSUPPORTED, "lost": Reason.BROKEN}


def test_a_full_disk_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("device_runtime.checkpoint.write_atomically", full)
    assert refusal_of(tmp_path / "a").reason is Reason.STORAGE
    monkeypatch.undo()
    monkeypatch.setattr("device_runtime.agent.agent_home.AgentHome.begin_task", full)
    coordinator = Coordinator()
    tasks(coordinator, some_masks(1), work=QUICK)
    joined(tmp_path / "b", coordinator).run(threading.Event())
    assert coordinator.refusals["task-1"].reason is Reason.STORAGE


class TurnedClock(DeviceClock):
    """A clock that can be turned."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.day = 1e9
        self.start = "first"

    def boot(self) -> str:
        return self.start

    def uptime(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.day


def test_a_deadline_is_counted_by_a_clock_that_nobody_sets() -> None:
    clock = TurnedClock()
    coordinator = Coordinator()
    task = clock.opened(coordinator.offer(full_mask(bundle().graph), deadline_seconds=60))
    clock.day += 1e7  # somebody sets the time
    clock.now += 59
    assert clock.remaining(task) == 1
    clock.start, clock.now, clock.day = "second", 3.0, 1e9 + 40  # a restart
    assert clock.remaining(task) == 20
    clock.day = 0.0  # a Raspberry Pi has no clock of its own: after a restart it is 1970
    assert clock.remaining(task) == 60


def test_training_ends_at_the_deadline_and_the_coordinator_is_told(tmp_path: Path) -> None:
    clock = TurnedClock()
    coordinator = Coordinator()
    tasks(coordinator, some_masks(1), work=LocalWork(epochs=5, batch_size=32), deadline_seconds=60)
    steps: list[int] = []

    def progress(done: int, total: int, loss: float) -> None:
        steps.append(done)
        clock.now += 13

    joined(tmp_path, coordinator, clock=clock, progress=progress).run(threading.Event())
    assert steps == [1, 2, 3, 4, 5]
    assert coordinator.refusals["task-1"].reason is Reason.DEADLINE


def test_a_stopped_agent_goes_on_later_without_training_twice(tmp_path: Path) -> None:
    coordinator, stop, steps = Coordinator(), threading.Event(), []
    tasks(coordinator, some_masks(1), work=LocalWork(epochs=3, batch_size=64))

    def progress(done: int, total: int, loss: float) -> None:
        steps.append(done)
        if len(steps) == 4:
            stop.set()

    joined(tmp_path, coordinator, progress=progress).run(stop)
    assert not coordinator.results
    joined(tmp_path, coordinator, progress=progress).run(threading.Event())
    assert steps == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert set(coordinator.results) == {"task-1"}
    assert coordinator.uploads == 1


def test_a_result_waits_for_a_coordinator_that_vanished(tmp_path: Path) -> None:
    coordinator = Coordinator()
    tasks(coordinator, some_masks(1), work=QUICK)
    stop = threading.Event()
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if len([line for line in said if "cannot be reached" in line]) > 30:
            stop.set()

    working = itertools.chain([Fault.NONE] * 7, itertools.repeat(Fault.TIMEOUT_BEFORE))
    joined(tmp_path, coordinator, faults=working, say=say).run(stop)
    assert not coordinator.results
    steps: list[int] = []
    back = joined(tmp_path, coordinator, progress=lambda done, total, loss: steps.append(done))
    back.run(threading.Event())
    assert steps == []
    assert set(coordinator.results) == {"task-1"}


def test_a_result_that_the_coordinator_rejects_is_dropped(tmp_path: Path) -> None:
    coordinator = Coordinator()
    plan = coordinator.offer(full_mask(bundle().graph), work=QUICK)
    agent = joined(tmp_path, coordinator)
    agent.turn(threading.Event())
    coordinator.plans.clear()  # it forgot the task
    agent.run(threading.Event())
    assert agent.tasks == 1
    assert AgentHome(tmp_path).open_task() is None
    with pytest.raises(RejectedError, match=f"no task {plan.task_id}"):
        agent._client.upload(plan.task_id, b"x")


def test_a_result_that_is_rejected_is_trained_once_and_its_task_refused(tmp_path: Path) -> None:
    coordinator = Coordinator()
    tasks(coordinator, some_masks(1), work=QUICK)
    rejected: list[str] = []

    def answer(request: Request) -> Reply:
        if request.path.endswith("/result"):
            rejected.append(request.path)
            return Reply(422, {}, b'{"error": {"problem": "it moves the model too far", "fix": "Train less."}}')
        return coordinator.answer(request)

    place = AgentHome(tmp_path)
    client = CoordinatorClient(InProcessTransport(answer))
    agent = Agent(
        place, client, lambda name: trainer(place.checkpoints, DATA), conditions=lambda: DeviceConditions(NOON)
    )
    agent.enrol("http://here", PROFILE, KEY)
    agent.run(threading.Event())
    assert len(rejected) == 1
    assert coordinator.refusals["task-1"].reason is Reason.BROKEN
    assert "moves the model too far" in coordinator.refusals["task-1"].message


def test_a_device_that_is_no_longer_welcome_stops(tmp_path: Path) -> None:
    coordinator = Coordinator()
    agent = joined(tmp_path, coordinator)
    agent._client.token = "revoked"
    with pytest.raises(UnknownDeviceError, match="token is not known"):
        agent.run(threading.Event())


def test_waits_grow_and_never_agree() -> None:
    backoff = Backoff(1.0, 60.0, random.Random(1))
    waits = [backoff.wait() for _ in range(10)]
    assert all(0.5 * 2**n <= wait <= 2**n for n, wait in enumerate(waits[:6]))
    assert all(30 <= wait <= 60 for wait in waits[7:])
    assert len(set(waits)) == 10
    assert 100 <= backoff.wait(asked=100.0) <= 110
    backoff.reset()
    assert backoff.wait() <= 1.0


class FullDisk:
    """Refuses to write some files, as a full disk does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        self.names = names
        for module in ("device_runtime.agent.agent_home", "device_runtime.personal_model"):
            monkeypatch.setattr(f"{module}.write_atomically", self.write)

    def write(self, path: Path, data: bytes, **settings: Any) -> None:
        if path.name in self.names:
            raise OSError(28, os.strerror(28))
        write_atomically(path, data, **settings)


@pytest.mark.parametrize("names", [["personal.safetensors", "usage.json"], ["result.safetensors"]])
def test_a_disk_that_is_full_after_training_costs_no_result(
    names: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = Coordinator()
    tasks(coordinator, some_masks(1), work=QUICK)
    FullDisk(monkeypatch, *names)
    joined(tmp_path, coordinator).run(threading.Event())
    assert set(coordinator.results) == {"task-1"}
    assert coordinator.refusals == {}


@pytest.mark.parametrize("status", [302, 308, 403, 404, 407, 413, 421, 451])
def test_what_a_proxy_says_is_not_what_the_coordinator_says(status: int, tmp_path: Path) -> None:
    coordinator = Coordinator()
    tasks(coordinator, some_masks(1), work=QUICK)
    portal = [0]

    def answer(request: Request) -> Reply:
        if portal[0] < 4 and ("/result" in request.path or portal[0] == 0):
            portal[0] += 1
            return Reply(status, {}, b"<html>please log in</html>")
        return coordinator.answer(request)

    place, steps = AgentHome(tmp_path), []
    agent = Agent(
        place,
        CoordinatorClient(InProcessTransport(answer)),
        lambda name: trainer(place.checkpoints, DATA, progress=lambda done, total, loss: steps.append(done)),
        settings=AgentSettings(least_wait=0.0),
        backoff=Backoff(0.001, 0.002),
    )
    with pytest.raises(UnreachableError):
        agent.enrol("http://here", PROFILE, KEY)
    agent.enrol("http://here", PROFILE, KEY)
    agent.run(threading.Event())
    assert set(coordinator.results) == {"task-1"}
    assert portal == [4]
    assert steps == list(range(1, len(steps) + 1))


def without_loss(graph: bytes) -> bytes:
    model = onnx.load_from_string(graph)
    kept = [output for output in model.graph.output if output.name != "loss"]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize(
    ("named", "change"),
    [
        ("graph", lambda graph: b"this is no graph"),
        ("graph", without_loss),
        ("graph", lambda graph: bundle().files["infer.onnx"]),
        ("inference", lambda graph: b"neither is this"),
        ("inference", lambda graph: graph[: len(graph) // 2]),
        ("inference", lambda graph: bundle().files["train.onnx"]),
        ("weights", lambda body: body[:-5]),
        ("model", lambda text: b"{}"),
        ("mask_body", lambda body: encode_mask(leading_channels(bundle().graph, 0.25))),
    ],
)
def test_nothing_that_a_plan_names_can_end_the_agent(named: str, change: Any, tmp_path: Path) -> None:
    coordinator = Coordinator()
    plan = coordinator.offer(leading_channels(bundle().graph, 0.5), task_id="strange", work=QUICK)
    wrong = coordinator.keep(change(coordinator.artifacts[str(getattr(plan, named))]))
    changed: dict[str, Any] = {named: wrong}
    coordinator.plans[:] = [replace(plan, **changed)]
    coordinator.offer(full_mask(bundle().graph), task_id="good", work=QUICK)
    joined(tmp_path, coordinator).run(threading.Event())
    assert set(coordinator.refusals) == {"strange"}
    assert set(coordinator.results) == {"good"}


def test_bytes_that_are_never_what_their_digest_says_are_given_up(tmp_path: Path) -> None:
    coordinator = Coordinator()
    plan = coordinator.offer(full_mask(bundle().graph), work=QUICK)
    coordinator.artifacts[str(plan.weights)] += b"!"
    joined(tmp_path, coordinator).run(threading.Event())
    assert coordinator.refusals[plan.task_id].reason is Reason.BROKEN
    assert "damaged" in coordinator.refusals[plan.task_id].message


def test_an_artifact_beyond_every_limit_is_not_taken(tmp_path: Path) -> None:
    coordinator = Coordinator()
    plan = coordinator.offer(full_mask(bundle().graph), weights=coordinator.keep(bytes(300_000)), work=QUICK)
    joined(tmp_path, coordinator, settings=AgentSettings(cache_bytes=200_000, least_wait=0.0)).run(threading.Event())
    assert "larger than 200,000 bytes" in coordinator.refusals[plan.task_id].message
    assert sum(path.stat().st_size for path in (tmp_path / "cache").rglob("*") if path.is_file()) <= 200_000


def test_the_owner_is_heard_while_the_device_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("device_runtime.agent.task_runner._LOOK_AGAIN_SECONDS", 0.0)
    coordinator = Coordinator()
    tasks(coordinator, some_masks(1), work=LocalWork(epochs=9, batch_size=32))
    plugged, steps = [True], []

    def progress(done: int, total: int, loss: float) -> None:
        steps.append(done)
        plugged[0] = len(steps) < 3

    agent = joined(
        tmp_path,
        coordinator,
        settings=AgentSettings(policy=OwnerPolicy(mains_only=True), least_wait=0.0, after_objection=0.0, most_tasks=1),
        conditions=lambda: DeviceConditions(NOON, plugged=plugged[0]),
        progress=progress,
    )
    agent.run(threading.Event())
    assert steps == [1, 2, 3]
    assert coordinator.refusals["task-1"].reason is Reason.POWER
    assert AgentHome(tmp_path).usage().joules > 0  # what was trained in vain was spent all the same
    assert AgentHome(tmp_path).usage().traffic_bytes > 10_000


def test_with_a_long_deadline_an_unplugged_device_keeps_its_task_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("device_runtime.agent.task_runner._LOOK_AGAIN_SECONDS", 0.0)
    coordinator = Coordinator()
    work = LocalWork(epochs=3, batch_size=32)
    tasks(coordinator, some_masks(1), work=work, deadline_seconds=40 * 3600.0)
    plugged, steps = [True], []

    def progress(done: int, total: int, loss: float) -> None:
        steps.append(done)
        if len(steps) == 3:
            plugged[0] = False

    policy = OwnerPolicy(mains_only=True, task_seconds=None)
    agent = joined(
        tmp_path,
        coordinator,
        settings=AgentSettings(policy=policy, least_wait=0.0),
        conditions=lambda: DeviceConditions(NOON, plugged=plugged[0]),
        progress=progress,
    )
    stop = threading.Event()
    assert [agent.turn(stop) for _ in range(3)] == [0.0, 60.0, 60.0]  # by day it only looks at its conditions
    assert (coordinator.refusals, coordinator.results) == ({}, {})
    plugged[0] = True
    assert agent.turn(stop) == 0.0
    assert set(coordinator.results) == {"task-1"}


def test_with_a_long_deadline_a_spent_day_is_still_refused(tmp_path: Path) -> None:
    AgentHome(tmp_path).save_usage(Usage("2026-05-01", joules=100.0))
    policy = OwnerPolicy(joules_a_day=100, task_seconds=None)
    refusal = refusal_of(tmp_path, DeviceConditions(NOON), policy, deadline_seconds=40 * 3600.0)
    assert refusal.reason is Reason.ENERGY


def test_an_eager_coordinator_is_not_asked_all_the_time(tmp_path: Path) -> None:
    coordinator = Coordinator()
    agent = joined(tmp_path, coordinator, settings=AgentSettings(least_wait=1.5))
    coordinator._next = lambda: Reply(200, {}, dumps(Assignment(retry_seconds=0)).encode())  # type: ignore[method-assign]
    assert agent.turn(threading.Event()) == 1.5


@pytest.mark.parametrize(("patience", "pause"), [(0.0, 7.5), (20.0, 0.0)])
def test_who_keeps_no_connection_open_comes_back_when_the_receipt_says(
    patience: float, pause: float, tmp_path: Path
) -> None:
    coordinator = Coordinator(retry_seconds=7.5)
    tasks(coordinator, some_masks(1), work=QUICK)
    agent = joined(tmp_path, coordinator, settings=AgentSettings(wait_seconds=patience))
    assert agent.turn(threading.Event()) == 0.0
    assert agent.turn(threading.Event()) == pause


def test_data_of_another_shape_are_refused_as_such(tmp_path: Path) -> None:
    coordinator = Coordinator()
    tasks(coordinator, some_masks(1), work=QUICK)
    features = np.zeros((40, 1, 5, 5), np.float32)
    samples = Samples(features, np.arange(40) % 10)
    data = LocalData.whole(Dataset("small", samples, Samples(features[:0], samples.labels[:0]), 10))
    place = AgentHome(tmp_path)
    client = CoordinatorClient(InProcessTransport(coordinator.answer))
    agent = Agent(place, client, lambda name: trainer(place.checkpoints, data), settings=AgentSettings(least_wait=0.0))
    agent.enrol("http://here", PROFILE, KEY)
    agent.run(threading.Event())
    assert coordinator.refusals["task-1"].reason is Reason.DATA


ALONE = RuleSettings(name="local_training", settings={"learning_rate": 0.1})


def own_bytes(home: Path) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in load_personal(home / "personal").weights.items()}


def test_a_device_goes_on_with_its_own_model_and_what_it_was_sent_stays_behind(tmp_path: Path) -> None:
    coordinator, mask = Coordinator(), full_mask(bundle().graph)
    tasks(coordinator, [mask, mask, mask], work=QUICK, rule=ALONE)
    joined(tmp_path / "home", coordinator).run(threading.Event())
    sent = bundle_weights(bundle())
    for number in (1, 2, 3):
        task = task_of(mask, rule=RuleSettings(name="sgd", settings=ALONE.settings), work=QUICK, seed=number)
        sent = dict(trainer(tmp_path / str(number), DATA).run(replace(task, weights=sent)).weights)
    assert own_bytes(tmp_path / "home") == {name: array.tobytes() for name, array in sent.items()}
    for body in coordinator.results.values():
        assert decode_result(body, bundle().graph).tensors == {}


def test_learning_a_mask_leaves_the_own_model_alone(tmp_path: Path) -> None:
    coordinator, whole = Coordinator(), full_mask(bundle().graph)
    (mine,) = some_masks(1)
    coordinator.offer(mine, task_id="task-1", round=1, seed=1, work=QUICK)
    probabilities = {f"p/{group.name}": np.full(group.width, 0.5, np.float32) for group in prunable_groups(whole)}
    rule = RuleSettings(name="probabilistic_masks", settings={"granularity": "channel", "capacity": 0.5})
    extras = coordinator.keep(encode_weights(probabilities, {}))
    coordinator.offer(whole, task_id="task-2", round=2, seed=2, work=QUICK, rule=rule, extras=extras)
    joined(tmp_path, coordinator).run(threading.Event())
    assert set(coordinator.results) == {"task-1", "task-2"}
    own = load_personal(tmp_path / "personal")
    assert (own.round, own.mask.digest) == (1, mine.digest)


class PowerCutError(BaseException):
    """Nothing catches it."""


@pytest.mark.parametrize("place", ["finish_task", "end_task"])
@pytest.mark.parametrize("checkpoint", ["kept", "lost"])
def test_a_power_cut_neither_loses_nor_doubles_the_own_model(
    place: str, checkpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    homes, mask = (tmp_path / "calm", tmp_path / "rough"), full_mask(bundle().graph)
    for home in homes:
        coordinator = Coordinator()
        tasks(coordinator, [mask], work=QUICK, rule=ALONE)
        joined(home, coordinator).run(threading.Event())
        coordinator.offer(mask, task_id="task-2", round=2, seed=2, work=QUICK, rule=ALONE)
        if home.name == "rough":
            agent, cuts = joined(home, coordinator), [PowerCutError]
            agent.turn(threading.Event())  # the plan is on disk

            def cut(self: AgentHome, *args: Any, cuts: list[type[PowerCutError]] = cuts) -> None:
                raise cuts.pop()

            monkeypatch.setattr(f"device_runtime.agent.agent_home.AgentHome.{place}", cut)
            with pytest.raises(PowerCutError):
                agent.turn(threading.Event())
            monkeypatch.undo()
            assert load_personal(home / "personal").round == 2
            if checkpoint == "lost":
                shutil.rmtree(home / "checkpoints", ignore_errors=True)
        joined(home, coordinator).run(threading.Event())
        assert set(coordinator.results) == {"task-1", "task-2"}
    assert own_bytes(homes[0]) == own_bytes(homes[1])


def test_a_device_that_joined_anew_begins_anew(tmp_path: Path) -> None:
    coordinator, mask = Coordinator(), full_mask(bundle().graph)
    tasks(coordinator, [mask], work=QUICK, rule=ALONE)
    joined(tmp_path / "a", coordinator).run(threading.Event())
    once = own_bytes(tmp_path / "a")
    coordinator.offer(mask, task_id="later", device_id="pi-2", round=1, seed=1, work=QUICK, rule=ALONE)
    joined(tmp_path / "a", coordinator).run(threading.Event())
    assert own_bytes(tmp_path / "a") == once
