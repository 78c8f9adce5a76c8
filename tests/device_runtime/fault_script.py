"""Kill an agent at random moments, break its network at random, and see that nothing is lost or done twice.

    python -m tests.device_runtime.fault_script --runs 200

Every run is a fresh device with two or three tasks. Its agent lives in a process that gets SIGKILL after a random time
and is started again until the federation is over; meanwhile requests fail in every way that `Fault` knows, and now and
then a byte of the cache is changed. Afterwards:

    every task has a result, sent once as far as the coordinator can tell, or a refusal with a reason
    no step whose checkpoint was written was trained again
    results are those of an undisturbed device, bit for bit: so no damaged file was ever used
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import device_runtime.checkpoint as checkpoint_module
from device_runtime.agent.agent import Agent
from device_runtime.agent.agent_home import AgentHome
from device_runtime.agent.backoff import Backoff
from device_runtime.agent.client import CoordinatorClient
from device_runtime.agent.transport import HttpTransport, UnreachableError
from device_runtime.checkpoint import TrainingProgress, save_checkpoint
from device_runtime.trainer import Trainer
from edgefl.local_rules import State
from edgefl.masks import Mask, random_channels
from edgefl.values import LocalWork, RuleSettings
from edgefl.wire import Dense, decode_result
from tests.device_runtime.coordinator import KEY, Coordinator
from tests.device_runtime.faulty_transport import Fault, FaultyTransport
from tests.device_runtime.federation import bundle, local_data, trainer
from tests.device_runtime.http_coordinator import serving
from tests.device_runtime.in_process_transport import InProcessTransport
from tests.values.samples import PROFILE

EPOCHS = 3
MOST_LIVES = 40
SAMPLES = 90
LONGEST_LIFE = 1.0
"""Seconds. An undisturbed run takes about as long, so most lives end in the middle of something."""


@dataclass
class Run:
    """What one run came to."""

    lives: int
    refused: int
    problems: list[str]


def main() -> int:
    """Do the runs, and say what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    began, runs = time.monotonic(), []
    for number in range(options.runs):
        runs.append(one_run(options.seed * 100_000 + number))
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{number + 1} of {options.runs}")
    problems = [f"run {number}: {problem}" for number, run in enumerate(runs) for problem in run.problems]
    kills = sum(run.lives - 1 for run in runs)
    sys.stdout.write(
        f"\n{len(runs)} runs, {kills} kills, {sum(run.refused for run in runs)} refusals, {len(problems)} problems, "
        f"{time.monotonic() - began:.0f} s\n"
    )
    sys.stdout.writelines(f"{problem}\n" for problem in problems)
    return bool(problems)


def one_run(seed: int) -> Run:
    """Let one device live through its tasks, and look at what is left."""
    chance = random.Random(seed)
    coordinator = Coordinator()
    _offer(coordinator, chance)
    with tempfile.TemporaryDirectory() as folder, serving(coordinator) as url:
        home, log = Path(folder) / "home", Path(folder) / "log"
        log.touch()
        lives = 0
        while lives < MOST_LIVES:
            lives += 1
            life = chance.uniform(0.02, LONGEST_LIFE) if lives < MOST_LIVES / 2 else 30.0
            if _live(home, log, url, chance.randrange(2**31), life):
                break
            _damage_cache(home, chance)
        problems = _problems(coordinator, log.read_text().splitlines(), seed)
    if lives == MOST_LIVES:
        problems.append("it never came to an end")
    return Run(lives, len(coordinator.refusals), problems)


def _offer(coordinator: Coordinator, chance: random.Random) -> None:
    generator = np.random.default_rng(chance.randrange(2**31))
    for number in range(1, chance.choice([2, 3]) + 1):
        mask: Mask = random_channels(bundle().graph, chance.choice([0.25, 0.5]), generator)
        rate = 1e30 if chance.random() < 0.1 else 0.1  # now and then a task that cannot be done
        rule = RuleSettings(name="sgd", settings={"learning_rate": rate, "momentum": 0.9})
        coordinator.offer(
            mask,
            task_id=f"task-{number}",
            seed=chance.randrange(2**31),
            rule=rule,
            work=LocalWork(epochs=EPOCHS, batch_size=16),
        )


def _live(home: Path, log: Path, url: str, seed: int, seconds: float) -> bool:
    """Run the agent in a process of its own for so long; tell whether it came to its end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _agent(home, log, url, seed)
            code = 0
        finally:
            os._exit(code)
    killer = threading.Timer(seconds, os.kill, (child, signal.SIGKILL))
    killer.start()
    _, status = os.waitpid(child, 0)
    killer.cancel()
    return os.waitstatus_to_exitcode(status) == 0


def _agent(home: Path, log: Path, url: str, seed: int) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)

    def note(text: str) -> None:
        os.write(descriptor, f"{text}\n".encode())

    def saving(path: Path, progress: TrainingProgress, state: State) -> None:
        save_checkpoint(path, progress, state)
        note(f"saved {progress.task_id} {state.steps}")

    checkpoint_module.save_checkpoint = saving
    transport = FaultyTransport(HttpTransport(url), _faults(random.Random(seed)))
    place = AgentHome(home)
    current: list[str] = []

    def step(done: int, steps: int, loss: float) -> None:
        note(f"step {current[-1]} {done} {steps}")

    def make(device_id: str) -> Trainer:
        task = place.open_task()
        current.append("" if task is None else task.plan.task_id)
        return trainer(place.checkpoints, local_data(SAMPLES), progress=step)

    agent = Agent(place, CoordinatorClient(transport), make, backoff=Backoff(0.001, 0.01, random.Random(seed)))
    while True:
        try:
            agent.enrol(url, PROFILE, KEY)
            break
        except UnreachableError:
            time.sleep(0.002)
    agent.run(threading.Event())


def _faults(chance: random.Random) -> Iterator[Fault]:
    for _ in range(40):
        yield chance.choice(list(Fault)) if chance.random() < 0.35 else Fault.NONE


def _damage_cache(home: Path, chance: random.Random) -> None:
    files = [path for path in (home / "cache").rglob("*") if path.is_file()]
    if files and chance.random() < 0.3:
        path = chance.choice(files)
        content = bytearray(path.read_bytes())
        if content:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            path.write_bytes(content)


def _problems(coordinator: Coordinator, log: list[str], seed: int) -> list[str]:
    problems = [f"{task} was answered in two ways" for task in coordinator.conflicts]
    problems += [f"{plan.task_id} has no end" for plan in coordinator.open_plans]
    problems += _trained_again(log)
    return problems + _different(coordinator, seed)


def _trained_again(log: list[str]) -> list[str]:
    saved: dict[str, int] = {}
    problems = []
    for line in log:
        kind, task, *numbers = line.split()
        if kind == "saved":
            saved[task] = int(numbers[0])
        elif int(numbers[0]) <= saved.get(task, 0):
            problems.append(f"step {numbers[0]} of {task} was trained after checkpoint {saved[task]}")
    return problems


def _different(coordinator: Coordinator, seed: int) -> list[str]:
    """Compare the results with those of a device that nobody disturbed."""
    calm = Coordinator(plans=coordinator.plans, artifacts=coordinator.artifacts)
    with tempfile.TemporaryDirectory() as folder:
        place = AgentHome(Path(folder))
        client = CoordinatorClient(InProcessTransport(calm.answer))
        agent = Agent(place, client, lambda name: trainer(place.checkpoints, local_data(SAMPLES)))
        agent.enrol("http://calm", PROFILE, KEY)
        agent.run(threading.Event())
    if calm.refusals.keys() != coordinator.refusals.keys():
        return [f"refused were {coordinator.refusals}, and not {calm.refusals}"]
    return [
        f"{task} has another result" for task in calm.results if _tensors(calm, task) != _tensors(coordinator, task)
    ]


def _tensors(coordinator: Coordinator, task: str) -> dict[str, bytes]:
    report = decode_result(coordinator.results[task], bundle().graph)
    return {name: payload.array.tobytes() for name, payload in report.tensors.items() if isinstance(payload, Dense)}


if __name__ == "__main__":
    sys.exit(main())
