"""The load test: write a federation, start the server, let devices join, poll and upload, and report."""

import asyncio
import contextlib
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from edgefl.artifacts.bundle import Bundle, write_bundle
from edgefl.bench.benchmark_model import missing_dependency
from edgefl.bench.load.connection import Connection
from edgefl.bench.load.device import Behaviour, Load, LoadDevice
from edgefl.bench.load.model import perceptron_bundle
from edgefl.bench.load.report_rows import load_notes, load_rows
from edgefl.bench.report import BenchReport, busy_note, load_now
from edgefl.bench.unlimited_device import unlimited_device
from edgefl.coordinator_process import CoordinatorProcess, running_coordinator
from edgefl.errors import EdgeFLError
from edgefl.values import Enrolled, Enrolment, dumps, loads

__all__ = ["join_all", "load_report", "served"]

_FEDERATION = """\
[federation]
name = "load"
model = "model.zip"
mode = "{mode}"

[strategy]
name = "fedavg"
width = "full"

[rounds]
count = {rounds}
deadline = "5 min"

[selection]
devices = {devices}
wait_for = {devices}
available_within = "10 min"
"""
_BUFFERING = """
[buffering]
size = {devices}
at_once = {devices}
"""
_NEEDED = ("fastapi", "uvicorn", "sqlalchemy", "onnx")
_JOINING_AT_ONCE = 16


def load_report(
    behaviour: Behaviour,
    *,
    workers: int = 1,
    database: str | None = None,
    bundle: Bundle | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> BenchReport:
    """Start a coordinator and load it with simulated devices."""
    for name, value in (("devices", behaviour.devices), ("rounds", behaviour.rounds), ("workers", workers)):
        if value < 1:
            raise EdgeFLError(f"--{name} is {value}", fix="Give a number of at least 1.")
    without = missing_dependency(_NEEDED, "Running a coordinator", "coordinator")
    if without is not None:
        raise without
    others = load_now()
    model = perceptron_bundle() if bundle is None else bundle
    progress("starting the coordinator")
    with (
        tempfile.TemporaryDirectory() as name,
        served(behaviour, model, Path(name), workers, database) as (load, server),
    ):
        progress(f"{behaviour.devices} devices, {behaviour.rounds} rounds")
        rounds = _event_loop()(_whole(load, server))
    setting = {
        "devices": behaviour.devices,
        "rounds": len(rounds),
        "workers": workers,
        "mode": "buffered" if behaviour.buffered else "rounds",
        "update_bytes": load.update_bytes,
        "model": model.manifest.model,
    }
    notes = ["devices are simulated in one process beside the server, and share its cores"]
    rows = load_rows(load, rounds)
    return BenchReport("coordinator", setting, rows, notes=[*notes, *load_notes(load.figures), *busy_note(others)])


@contextlib.contextmanager
def served(
    behaviour: Behaviour, model: Bundle, folder: Path, workers: int = 1, database: str | None = None
) -> Iterator[tuple[Load, CoordinatorProcess]]:
    """Serve a federation that opens its first round when all devices have joined, with its state in `folder/state`."""
    write_bundle(model, folder / "model.zip")
    file = folder / "federation.toml"
    file.write_text(_federation(behaviour), encoding="utf-8")
    with running_coordinator(file, folder / "state", workers=workers, database=database) as server:
        yield Load(model.graph, behaviour, server.resident_bytes), server


def _federation(behaviour: Behaviour) -> str:
    mode = "buffered" if behaviour.buffered else "rounds"
    text = _FEDERATION.format(rounds=behaviour.rounds, devices=behaviour.devices, mode=mode)
    return text + (_BUFFERING.format(devices=behaviour.devices) if behaviour.buffered else "")


def _event_loop() -> Callable[..., list[dict[str, Any]]]:
    """Return uvloop's `run`, if installed, or asyncio's."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


async def _whole(load: Load, server: CoordinatorProcess) -> list[dict[str, Any]]:
    """Join, run until the federation ends, and return the coordinator's records of its rounds."""
    fleet = await join_all(load, server, load.behaviour.devices)
    before, own = server.processor_seconds(), time.process_time()
    await asyncio.gather(*(device.run() for device in fleet))
    load.figures.server_seconds = server.processor_seconds() - before
    load.figures.own_seconds = time.process_time() - own
    connection = Connection(server.host, server.port)
    status, body = await connection.send("GET", "/v1/federations/load/rounds", server.admin_token)
    await connection.close()
    if status != 200:
        raise EdgeFLError(f"cannot read the rounds from the coordinator: {status} {body[:200]!r}", fix="Try again.")
    found: list[dict[str, Any]] = json.loads(body)["rounds"]
    return found


async def join_all(load: Load, server: CoordinatorProcess, count: int) -> list[LoadDevice]:
    """Let `count` devices join, a few at a time."""
    gate = asyncio.Semaphore(_JOINING_AT_ONCE)
    return await asyncio.gather(*(_joined(load, server, at, gate) for at in range(count)))


async def _joined(load: Load, server: CoordinatorProcess, number: int, gate: asyncio.Semaphore) -> LoadDevice:
    asked = Enrolment(
        enrolment_id=f"enrolment-{number}", profile=unlimited_device(), software="load", name=f"device-{number:05d}"
    )
    connection = Connection(server.host, server.port)
    async with gate:
        status, body = await connection.send("POST", "/v1/devices", server.join_key, dumps(asked).encode())
    if status not in (200, 201):
        raise EdgeFLError(f"a device could not join: {status} {body[:200]!r}", fix="Try fewer devices.")
    return LoadDevice(connection, loads(Enrolled, body).token, load)
