"""A coordinator that sends programs which are damaged, or not programs at all: a refusal, and the agent goes on."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from device_runtime.agent.agent import Agent
from device_runtime.agent.agent_home import AgentHome
from device_runtime.agent.client import CoordinatorClient
from device_runtime.agent.own_capabilities import own_capabilities
from device_runtime.agent.owner_policy import DeviceConditions
from device_runtime.agent.worker_process import WorkerProcess
from device_runtime.engines import open_engine
from edgefl.errors import ExportError
from edgefl.values import LocalWork, Reason, digest_of, dumps
from tests.device_runtime.agent.test_agent import NOON
from tests.device_runtime.coordinator import KEY, Coordinator
from tests.device_runtime.in_process_transport import InProcessTransport
from tests.export.test_executorch_engine import ONE, mask, program
from tests.values.samples import PROFILE


def flipped(pte: bytes, seed: int) -> bytes:
    """A program with eight flipped bits. Some of these end ExecuTorch's runtime with a signal."""
    damaged, generator = bytearray(pte), random.Random(seed)
    for _ in range(8):
        damaged[generator.randrange(len(pte))] ^= 1 << generator.randrange(8)
    return bytes(damaged)


@pytest.mark.parametrize(
    "damage",
    [
        lambda pte: b"",
        lambda pte: b"not a program at all" * 10,
        lambda pte: pte[: len(pte) // 2],
        lambda pte: pte[:-1],
        lambda pte: pte[:4] + b"ET99" + pte[8:],  # a later version of the file format
    ],
    ids=["empty", "foreign", "half", "short", "version"],
)
def test_what_is_not_a_whole_program_is_refused(damage: Callable[[bytes], bytes]) -> None:
    sound, document = program()
    pte = damage(sound)
    with pytest.raises(ExportError, match="cannot load the program"):
        open_engine("executorch", ONE).train_step(pte, mask(), program=replace(document, size=len(pte)))


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[WorkerProcess]:
    data = {"data": "digits", "folder": None, "client": "1/20", "partition": "iid", "seed": 0, "validation": 0.1}
    options = {
        "home": str(tmp_path / "home"),
        "engine": "executorch",
        "threads": 1,
        "data": data,
        "most_file_bytes": 10**8,
        "checkpoint_seconds": 60.0,
    }
    with closing(WorkerProcess("edgefl.cli.join_worker", options)) as process:
        yield process


def test_a_damaged_program_costs_its_task_and_the_next_one_is_done(tmp_path: Path, worker: WorkerProcess) -> None:
    coordinator, (sound, document) = Coordinator(), program()
    programs = [flipped(sound, 6), sound]
    for number, pte in enumerate(programs):
        said = replace(document, pte=coordinator.keep(pte), size=len(pte))
        work = LocalWork(epochs=1, batch_size=32)
        coordinator.offer(
            mask(), task_id=f"task-{number}", work=work, program=coordinator.keep(dumps(said).encode()), inference=None
        )
    client = CoordinatorClient(InProcessTransport(coordinator.answer))
    agent = Agent(AgentHome(tmp_path / "home"), client, worker, conditions=lambda: DeviceConditions(NOON))
    agent.enrol("http://here", PROFILE, KEY, capabilities=own_capabilities("executorch"))
    agent.run(threading.Event())
    assert list(coordinator.results) == [f"task-{len(programs) - 1}"]
    (refusal,) = coordinator.refusals.values()
    assert refusal.reason in (Reason.BROKEN, Reason.UNSUPPORTED)
    assert "process ended" in refusal.message or "cannot" in refusal.message
    asked = {request.path.rpartition("/")[2] for request in coordinator.requests}
    assert digest_of(sound) in asked
    assert not {plan.graph for plan in coordinator.plans} & asked  # no graph is downloaded in vain
