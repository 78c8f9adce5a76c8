"""Kill the coordinator at random moments of its rounds, and see that it loses nothing and counts nothing twice.

    python -m tests.coordinator.chaos --runs 100
    python -m tests.coordinator.chaos --runs 30 --workers 2        on a PostgreSQL that this starts itself

Every run is a new federation of three rounds and six devices that download, upload and poll over HTTP. Its worker, or
one of its workers, gets SIGKILL again and again after a random time and is started again. When the federation is over:

    every update that was promised ("accepted", "already have it") counts in exactly the round that it was made for
    no task counts that was not sent, or counts twice
    the model of every round is the average of just those updates, computed here in a plain loop
"""

import argparse
import contextlib
import multiprocessing
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

from coordinator.federations.lifecycle import Verb, create, move, new_key
from coordinator.http.server import serve
from coordinator.http.server_settings import ServerSettings
from coordinator.rounds.context import Context
from coordinator.storage.open import open_blobs, open_store
from coordinator.storage.records import FederationState
from edgefl.artifacts.bundle import pack_bundle
from edgefl.federation.settings import FederationSettings, RoundSettings, SelectionSettings, UploadLimits
from edgefl.masks import Weights
from edgefl.wire import Dense, decode_result
from tests.coordinator.postgresql import free_port, postgresql
from tests.coordinator.simulated_device import SimulatedDevice
from tests.device_runtime.federation import bundle

NAME, DEVICES, ROUNDS = "chaos", 6, 3
LONGEST_RUN = 120.0
"""Seconds after which a federation counts as stuck."""


@dataclass
class Run:
    """What one run came to."""

    kills: int
    promised: int
    problems: list[str]


def one_run(seed: int, folder: Path, database: str, workers: int) -> Run:
    """Run one federation among killed workers, and check it."""
    chance = random.Random(seed)
    context = Context(open_store(database), open_blobs(str(folder / "blobs")))
    settings = FederationSettings(
        name=NAME,
        seed=seed,
        rounds=RoundSettings(count=ROUNDS, deadline=20, at_least=chance.randint(1, DEVICES)),
        selection=SelectionSettings(devices=DEVICES, wait_for=DEVICES),
        limits=UploadLimits(most_movement=None),
    )
    create(context, settings, pack_bundle(bundle()))
    _, key = new_key(context, NAME)
    move(context, NAME, Verb.START)
    ports = [free_port() for _ in range(workers)]
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    devices = [SimulatedDevice(f"device-{n}", key, urls, float(n), 10 + n) for n in range(DEVICES)]
    stop = threading.Event()
    threads = [threading.Thread(target=device.run, args=(stop,)) for device in devices]
    for thread in threads:
        thread.start()
    kills = _disturb(context, folder, database, ports, chance)
    stop.set()
    for thread in threads:
        thread.join()
    problems = [problem for device in devices for problem in device.problems]
    federation = context.store.federations.get(NAME)
    if federation is None or federation.state is not FederationState.FINISHED:
        problems.append(f"the federation did not finish: {federation}")
    else:
        problems += _check(context, devices)
    context.store.close()
    return Run(kills, sum(len(device.promised) for device in devices), problems)


def _disturb(context: Context, folder: Path, database: str, ports: list[int], chance: random.Random) -> int:
    """Keep workers running, and kill them, until the federation is over. The last ones may live."""
    kills, most = 0, chance.randint(2, 6)
    living = [_start(folder, database, port) for port in ports]
    begun = time.monotonic()
    try:
        while time.monotonic() - begun < LONGEST_RUN:
            federation = context.store.federations.get(NAME)
            if federation is not None and federation.state is FederationState.FINISHED:
                break
            time.sleep(chance.uniform(0.05, 1.0) if kills < most else 0.2)
            if kills < most:
                victim = chance.randrange(len(living))
                _kill(living[victim])
                kills += 1
                living[victim] = _start(folder, database, ports[victim])
    finally:
        time.sleep(0.3)  # devices hear that it is over
        for process in living:
            _kill(process)
    return kills


def _start(folder: Path, database: str, port: int) -> "multiprocessing.process.BaseProcess":
    process = _FORKS.Process(target=_worker, args=(str(folder), database, port), daemon=True)
    process.start()
    return process


def _kill(process: "multiprocessing.process.BaseProcess") -> None:
    if process.pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    process.join()


def _worker(folder: str, database: str, port: int) -> None:
    serve(
        ServerSettings(
            state=Path(folder), database=database, blobs=str(Path(folder) / "blobs"), port=port, log_level="error"
        )
    )


def _check(context: Context, devices: list[SimulatedDevice]) -> list[str]:
    counted = [task for number in range(ROUNDS) for task in context.store.tasks.counted(NAME, number)]
    known = {task.id for task in counted}
    sent = {task: body for device in devices for task, body in device.sent.items()}
    promised = {task for device in devices for task in device.promised}
    problems = [f"task {task} was promised and does not count" for task in promised - known]
    problems += [f"task {task} counts and was not sent" for task in known - sent.keys()]
    problems += [f"task {task.id} counts in another round" for task in counted if task.counted_in != task.round]
    if len(known) < len(counted):
        problems.append("a task counts twice")
    for number in range(ROUNDS):
        done = context.store.rounds.get(NAME, number)
        if done is None or done.next_model is None:
            return [*problems, f"round {number} has no model"]
        bodies = [sent[task.id] for task in counted if task.counted_in == number and task.id in sent]
        problems += _differences(number, context.repository.arrays(done.next_model), bodies)
    return problems


def _differences(number: int, now: Weights, bodies: list[bytes]) -> list[str]:
    """Compare a round's model with a plain average of its updates."""
    reports = [decode_result(body, bundle().graph) for body in bodies]
    total = sum(report.result.samples for report in reports)
    problems = []
    for name, array in now.items():
        wanted = np.zeros(array.shape)
        for report in reports:
            tensor = report.tensors[name]
            assert isinstance(tensor, Dense)
            wanted += report.result.samples * tensor.array.astype(np.float64)
        if np.issubdtype(array.dtype, np.floating) and not np.allclose(array, wanted / total, rtol=1e-5, atol=1e-5):
            problems.append(f"round {number}: {name} is not the average of its {len(bodies)} updates")
    return problems


_FORKS = multiprocessing.get_context("forkserver")
"""Workers are forked from a process that has imported everything, so that a life begins in milliseconds."""


@contextlib.contextmanager
def databases(workers: int) -> Iterator[str | None]:
    """A PostgreSQL for several workers; one worker has SQLite in its folder."""
    if workers == 1:
        yield None
        return
    with postgresql() as url:
        yield url


def main() -> int:
    """Run, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    _FORKS.set_forkserver_preload(["coordinator.http.server", "tests.coordinator.simulated_device"])
    begun, kills, promised, failures = time.monotonic(), 0, 0, 0
    for number in range(args.runs):
        with tempfile.TemporaryDirectory() as folder, databases(args.workers) as url:
            run = one_run(args.seed + number, Path(folder), url or f"sqlite:///{folder}/coordinator.db", args.workers)
        kills, promised, failures = kills + run.kills, promised + run.promised, failures + bool(run.problems)
        for problem in run.problems:
            sys.stdout.write(f"run {number}: {problem}\n")
        sys.stderr.write(f"\r{number + 1} of {args.runs} runs, {kills} kills, {promised} updates, {failures} failures")
    seconds = time.monotonic() - begun
    sys.stdout.write(
        f"\n{args.runs} runs, {args.workers} worker(s), {kills} kills, {promised} acknowledged updates, "
        f"{failures} runs with problems, {seconds:.0f} s\n"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
