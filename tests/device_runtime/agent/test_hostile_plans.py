"""A hostile coordinator's plans: the owner's limits hold whatever a plan says of itself, and what it names."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from device_runtime.agent.agent import Agent, AgentSettings
from device_runtime.agent.agent_home import AgentHome
from device_runtime.agent.backoff import Backoff
from device_runtime.agent.client import CoordinatorClient
from device_runtime.agent.owner_policy import DeviceConditions, OwnerPolicy
from device_runtime.agent.transport import HttpTransport, Reply, Request
from device_runtime.agent.worker_process import WorkerProcess
from device_runtime.engines.onnx import OnnxStep
from edgefl.local_rules import Batch, trained_parameters
from edgefl.masks import full_mask, gather
from edgefl.values import Assignment, ClientPlan, LocalWork, Outcome, Prediction, Reason, Receipt, dumps
from edgefl.wire import encode_weights
from tests.device_runtime.agent.test_agent import NOON, QUICK, joined
from tests.device_runtime.coordinator import KEY, Coordinator
from tests.device_runtime.federation import bundle, task_of
from tests.device_runtime.hostile import endless_loop, large_product, long_chain
from tests.device_runtime.http_coordinator import serving
from tests.device_runtime.in_process_transport import InProcessTransport
from tests.values.samples import PROFILE

MIB = 2**20
MASK = full_mask(bundle().graph)


def refused(home: Path, plan: dict[str, Any], policy: OwnerPolicy, **settings: Any) -> tuple[Coordinator, Any]:
    """Let a device that trains in this process refuse a plan."""
    coordinator = Coordinator()
    coordinator.offer(MASK, **({"work": QUICK} | plan))
    rules = AgentSettings(policy=policy, least_wait=0.0, after_objection=0.0, most_tasks=1, **settings)
    joined(home, coordinator, settings=rules).run(threading.Event())
    assert not coordinator.results
    return coordinator, coordinator.refusals["task-1"]


@pytest.mark.parametrize("said", [None, Prediction(), Prediction(peak_bytes=0), Prediction(peak_bytes=1)])
def test_a_memory_limit_holds_without_the_coordinators_prediction(said: Prediction | None, tmp_path: Path) -> None:
    coordinator, refusal = refused(tmp_path, {"predicted": said}, OwnerPolicy(memory_bytes=MIB))
    assert refusal.reason is Reason.MEMORY
    asked = [request.path for request in coordinator.requests if "/artifacts/" in request.path]
    assert len(asked) == 2  # the descriptions of model and mask, and neither weights nor graph


def test_the_larger_of_both_predictions_counts(tmp_path: Path) -> None:
    policy = OwnerPolicy(memory_bytes=2**33)
    _, refusal = refused(tmp_path, {"predicted": Prediction(peak_bytes=2**34)}, policy)
    assert refusal.reason is Reason.MEMORY


@pytest.mark.parametrize("work", [LocalWork(epochs=2**53 - 1), LocalWork(epochs=10**9, batch_size=2**53 - 1)])
def test_a_plan_for_a_lifetime_is_refused(work: LocalWork, tmp_path: Path) -> None:
    _, refusal = refused(tmp_path, {"work": work}, OwnerPolicy())
    assert refusal.reason is Reason.UNSUPPORTED
    assert "training steps" in refusal.message


def test_a_batch_of_any_size_is_at_most_the_devices_data(tmp_path: Path) -> None:
    coordinator = Coordinator()
    coordinator.offer(MASK, work=LocalWork(epochs=1, batch_size=2**53 - 1))
    joined(tmp_path, coordinator).run(threading.Event())
    assert set(coordinator.results) == {"task-1"}


def test_a_task_ends_when_the_owner_says_whatever_its_deadline(tmp_path: Path) -> None:
    plan = {"work": LocalWork(epochs=2000, batch_size=4), "deadline_seconds": 1e15}
    _, refusal = refused(tmp_path, plan, OwnerPolicy(task_seconds=0.5))
    assert refusal.reason is Reason.DEADLINE
    assert "that the owner allows" in refusal.message


def test_an_energy_limit_holds_during_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("device_runtime.agent.task_runner._LOOK_AGAIN_SECONDS", 0.05)
    plan = {"work": LocalWork(epochs=2000, batch_size=4), "deadline_seconds": 1e15}
    _, refusal = refused(tmp_path, plan, OwnerPolicy(joules_a_day=0.5))
    assert refusal.reason is Reason.ENERGY


def test_a_download_ends_where_the_day_does_and_the_task_is_refused(tmp_path: Path) -> None:
    whole = encode_weights({"w": np.zeros(10 * MIB, np.float32)}, {})
    policy = OwnerPolicy(bytes_a_day=MIB)
    coordinator = Coordinator()
    coordinator.offer(MASK, work=QUICK, weights=coordinator.keep(whole))
    agent = joined(tmp_path, coordinator, settings=AgentSettings(policy=policy))
    waits = [agent.turn(threading.Event()) for _ in range(3)]
    assert coordinator.refusals["task-1"].reason is Reason.TRAFFIC
    used = AgentHome(tmp_path).usage().traffic_bytes
    assert 0.8 * MIB < used <= MIB
    assert waits[-1] == 600.0  # no further poll today
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) < 2 * MIB


@pytest.mark.parametrize("limit", [MIB, 4 * MIB])
def test_a_task_that_the_day_does_not_suffice_for_is_refused_over_the_network_too(limit: int, tmp_path: Path) -> None:
    coordinator = Coordinator()
    coordinator.offer(MASK, work=QUICK, weights=coordinator.keep(bytes(range(256)) * 200_000))
    place = AgentHome(tmp_path)
    with serving(coordinator) as url:
        transport = HttpTransport(url)
        settings = AgentSettings(policy=OwnerPolicy(bytes_a_day=limit))
        agent = Agent(
            place, CoordinatorClient(transport), lambda name: pytest.fail("nothing to train"), settings=settings
        )
        agent.enrol(url, PROFILE, KEY)
        waits = [agent.turn(threading.Event()) for _ in range(3)]
        transport.close()
    assert coordinator.refusals["task-1"].reason is Reason.TRAFFIC
    assert waits[-1] == 600.0
    assert place.usage().traffic_bytes <= limit


def test_downloads_that_break_off_again_and_again_do_not_fill_the_disk(tmp_path: Path) -> None:
    coordinator, limit = Coordinator(), 200_000
    for number in range(5):
        weights = coordinator.keep(bytes([number]) * 150_000)
        coordinator.offer(MASK, task_id=f"task-{number}", work=QUICK, weights=weights)
    broken: list[str] = []

    def answer(request: Request) -> Reply:
        reply = coordinator.answer(request)
        if "/artifacts/" in request.path and len(reply.body) > 100_000:
            broken.append(request.path)
            return Reply(200, {}, reply.body[:-1])  # it never is what its digest says
        return reply

    place = AgentHome(tmp_path)
    agent = Agent(
        place,
        CoordinatorClient(InProcessTransport(answer)),
        lambda name: pytest.fail("there is nothing to train"),
        settings=AgentSettings(cache_bytes=limit, least_wait=0.0, most_tasks=5),
        backoff=Backoff(0.001, 0.002),
    )
    agent._after_refusal = Backoff(0.001, 0.002)
    agent.enrol("http://here", PROFILE, KEY)
    agent.run(threading.Event())
    assert len(coordinator.refusals) == 5
    assert len(broken) <= 5 * 4
    assert sum(path.stat().st_size for path in (tmp_path / "cache").rglob("*") if path.is_file()) <= limit


def test_a_coordinator_whose_tasks_all_fail_is_asked_ever_less(tmp_path: Path) -> None:
    coordinator = Coordinator()
    for number in range(8):
        coordinator.offer(MASK, task_id=f"task-{number}", work=QUICK, weights=None)
    agent = joined(tmp_path, coordinator)
    waits = [agent.turn(threading.Event()) or 0.0 for _ in range(16)][1::2]
    assert waits[:3] == [0.0, 0.0, 0.0]
    assert all(0.5 * 2**at <= wait <= 2**at for at, wait in enumerate(waits[3:]))


@pytest.mark.parametrize(("said", "most"), [(0.0, 1.0), (1e300, 1e300)])
def test_a_coordinator_decides_neither_to_be_asked_all_the_time_nor_never(
    said: float, most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator, waits = Coordinator(), []
    coordinator._next = lambda: Reply(200, {}, dumps(Assignment(retry_seconds=said)).encode())  # type: ignore[method-assign]

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            self.set()
            return True

    joined(tmp_path, coordinator).run(Stop())
    assert len(waits) == 1
    assert 1.0 <= (waits[0] or 0.0) <= 3600.0


NAMES = ["../../outside", "a/b", "..", "/etc/passwd", "a\0b", "a\nb", "", ".hidden", "C:\\x", "x" * 129, "a b", "ü"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("field", ["task_id", "device_id"])
def test_no_name_in_an_answer_becomes_a_path(name: str, field: str, tmp_path: Path) -> None:
    coordinator = Coordinator()
    plan = json.loads(dumps(coordinator.offer(MASK, work=QUICK)))
    said = json.loads(dumps(Assignment(retry_seconds=0)))
    body = json.dumps(said | {"plan": plan | {field: name}}).encode()
    coordinator._next = lambda: Reply(200, {}, body)  # type: ignore[method-assign]
    agent = joined(tmp_path / "home", coordinator)
    with pytest.raises(Exception, match="not valid"):
        agent.turn(threading.Event())
    assert {path.name for path in tmp_path.iterdir()} == {"home"}
    assert not (tmp_path / "home" / "task").exists()


@pytest.mark.parametrize(
    "name", ["../../outside", "sha256:../../etc/passwd", "file:///etc/passwd", "SHA256:" + "0" * 64]
)
@pytest.mark.parametrize("field", ["model", "mask", "graph", "weights", "inference", "extras", "mask_body"])
def test_no_digest_in_an_answer_becomes_a_path(name: str, field: str, tmp_path: Path) -> None:
    coordinator = Coordinator()
    plan = json.loads(dumps(coordinator.offer(MASK, work=QUICK)))
    said = json.loads(dumps(Assignment(retry_seconds=0)))
    body = json.dumps(said | {"plan": plan | {field: name}}).encode()
    coordinator._next = lambda: Reply(200, {}, body)  # type: ignore[method-assign]
    with pytest.raises(Exception, match="not valid"):
        joined(tmp_path / "home", coordinator).turn(threading.Event())


def test_a_receipt_for_another_task_ends_only_the_task_that_was_sent(tmp_path: Path) -> None:
    coordinator = Coordinator()
    coordinator.offer(MASK, work=QUICK)
    coordinator._end = lambda *args: Reply(  # type: ignore[method-assign]
        200, {}, dumps(Receipt(task_id="another", outcome=Outcome.ACCEPTED, retry_seconds=1e300)).encode()
    )
    agent = joined(tmp_path, coordinator, settings=AgentSettings(wait_seconds=0))
    agent.turn(threading.Event())
    agent.turn(threading.Event())
    assert AgentHome(tmp_path).open_task() is None


# What the engine computes


def step_of(graph: bytes) -> OnnxStep:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    return OnnxStep(session, trained_parameters(MASK), None)


@pytest.mark.parametrize("change", [endless_loop, lambda graph: long_chain(graph, 800, 300)], ids=["loop", "chain"])
def test_a_step_that_does_not_end_is_cancelled(change: Any) -> None:
    task = task_of()
    step = step_of(change(task.graph))
    batch = Batch(np.zeros((4, 1, 8, 8), np.float32), np.zeros(4, np.int64), 0)
    timer = threading.Timer(0.5, step.cancel)
    timer.start()
    with pytest.raises(Exception, match=r"cannot run the step"):
        step(gather(MASK, task.weights), batch)
    timer.join()


def hostile(coordinator: Coordinator, graph: bytes, task_id: str, **changes: Any) -> ClientPlan:
    """Offer a task with another training graph."""
    plan = coordinator.offer(MASK, task_id=task_id, work=QUICK, **changes)
    coordinator.plans[-1] = replace(plan, graph=coordinator.keep(graph))
    return plan


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[WorkerProcess]:
    """The process in which `edgefl join` trains."""
    data = {"data": "digits", "folder": None, "client": "1/5", "partition": "iid", "seed": 0, "validation": 0.1}
    options = {"home": str(tmp_path), "engine": None, "threads": 1, "data": data, "most_file_bytes": 10**8}
    options |= {"checkpoint_seconds": 0}
    process = WorkerProcess("edgefl.cli.join_worker", options)
    yield process
    process.close()


def run_with(worker: WorkerProcess, home: Path, coordinator: Coordinator, policy: OwnerPolicy) -> Agent:
    with serving(coordinator) as url:
        transport = HttpTransport(url)
        agent = Agent(
            AgentHome(home),
            CoordinatorClient(transport),
            worker,
            settings=AgentSettings(policy=policy, least_wait=0.0, after_objection=0.0),
            conditions=lambda: DeviceConditions(NOON),
        )
        agent.enrol(url, PROFILE, KEY)
        agent.run(threading.Event())
        transport.close()
    return agent


def test_whatever_a_graph_does_the_agent_goes_on_with_the_next_task(worker: WorkerProcess, tmp_path: Path) -> None:
    coordinator = Coordinator()
    honest = task_of().graph
    hostile(coordinator, endless_loop(honest), "endless")
    hostile(coordinator, large_product(honest, 9_000), "one-long-operation")
    hostile(coordinator, large_product(honest, 40_000), "much-memory")
    coordinator.offer(MASK, task_id="honest", work=QUICK)
    began = time.monotonic()
    run_with(worker, tmp_path, coordinator, OwnerPolicy(memory_bytes=1500 * MIB, task_seconds=4.0))
    assert set(coordinator.results) == {"honest"}
    reasons = {task: refusal.reason for task, refusal in coordinator.refusals.items()}
    assert set(reasons) == {"endless", "one-long-operation", "much-memory"}
    assert time.monotonic() - began < 120


def test_a_worker_that_dies_costs_its_task_and_nothing_else(worker: WorkerProcess, tmp_path: Path) -> None:
    coordinator = Coordinator()
    for name in ("first", "second"):
        coordinator.offer(MASK, task_id=name, work=LocalWork(epochs=200, batch_size=8))
    coordinator.plans[1] = replace(coordinator.plans[1], work=QUICK)
    worker.start()
    assert worker._process is not None

    def end(process: Any) -> None:
        while not list(tmp_path.glob("checkpoints/*")):
            time.sleep(0.02)
        process.kill()

    killer = threading.Thread(target=end, args=(worker._process,))
    killer.start()
    run_with(worker, tmp_path, coordinator, OwnerPolicy())
    killer.join()
    assert set(coordinator.results) == {"second"}
    assert coordinator.refusals["first"].reason is Reason.MEMORY
    assert AgentHome(tmp_path).usage().joules > 0


def test_a_worker_knows_no_key_and_ends_with_its_agent(worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEFL_JOIN_KEY", "secret")
    worker.start()
    assert worker._process is not None
    variables = Path(f"/proc/{worker._process.pid}/environ").read_bytes()
    assert b"PYTHONPATH" in variables
    assert b"EDGEFL_JOIN_KEY" not in variables
    assert worker._connection is not None
    worker._connection.close()
    worker._connection = None
    assert worker._process.wait(10) == 0
