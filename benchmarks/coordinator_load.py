"""How many devices does one coordinator hold? A real server, and a thousand simulated devices beside it.

    python -m benchmarks.coordinator_load [--devices 1000] [--rounds 6] [--workers 2] [--wait 0] [--start 4]
                                          [--buffered] [--train 0] [--download]

The server has processes of its own, --workers of them (SQLite, blobs in a folder, every update synced to disk before it
is acknowledged). Devices poll, come back when they are told to, and upload an update of about 50 KB each round; with
--download they also fetch its weights. They share this process: plain sockets, one connection each, kept open. Their
first polls come within --start seconds, as no fleet is switched on in one millisecond; from then on the coordinator
says when they come. Without --train an update follows its task at once, and the server is always as busy as it can be;
with --buffered and --train it has as much to do as so many devices give it. Printed:

    updates a second      accepted updates over the whole time from the first round's opening to the last one's end
    poll, upload          milliseconds from request to answer
    memory                resident set of the server's processes after 10 and after all updates of a round, together,
                          and by how much the one grew that grew most

With --wait, polls wait at the coordinator, which then wakes a thousand devices at the same moment: the time of a poll
is counted from the opening of its round.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch  # noqa: TID251  exports the model
import uvloop
from torch import nn  # noqa: TID251

from edgefl.artifacts.bundle import Bundle, write_bundle
from edgefl.masks import full_mask
from edgefl.model_graph import ModelGraph
from edgefl.values import Enrolled, Enrolment, LocalResult, dumps, loads
from edgefl.wire import Dense, Report, encode_result
from export.bundle import make_bundle
from export.zoo.seeding import seeded
from tests.cli.running_coordinator import children
from tests.values.samples import PROFILE, TELEMETRY

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


@dataclass
class Connection:
    """One device's connection: HTTP/1.1, one request at a time."""

    host: str
    port: int
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None

    async def send(self, method: str, path: str, token: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request and return status and body."""
        if self.writer is None or self.reader is None:
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self.writer.write(head.encode() + body)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        size = next(int(line[15:]) for line in lines if line.lower().startswith(b"content-length:"))
        return int(lines[0].split()[1]), await self.reader.readexactly(size)


@dataclass
class Figures:
    """What was seen."""

    polls: list[float] = field(default_factory=list)
    uploads: list[float] = field(default_factory=list)
    waits: list[tuple[int, float]] = field(default_factory=list)
    """Round and time of day of every task that came."""
    accepted: dict[int, int] = field(default_factory=dict)
    memory: dict[int, dict[int, dict[int, float]]] = field(default_factory=dict)
    """Resident megabytes of the server's processes by round and number of its updates."""
    errors: list[str] = field(default_factory=list)
    server_seconds: float = 0.0
    """Processor time of the server from the first poll to the last."""
    own_seconds: float = 0.0
    """Processor time of the devices meanwhile."""


@dataclass
class Device:
    """One simulated device."""

    connection: Connection
    name: str
    token: str
    load: "Load"

    async def run(self) -> None:
        """Poll and upload until the federation is over."""
        await asyncio.sleep(random.uniform(0, self.load.start))
        while True:
            begun = time.perf_counter()
            path = f"/v1/tasks/next?wait={self.load.wait:g}"
            status, body = await self.connection.send("POST", path, self.token)
            if status != 200:
                self.load.figures.errors.append(f"poll: {status} {body[:200]!r}")
                await asyncio.sleep(1)
                continue
            answer = json.loads(body)
            self.load.figures.polls.append(time.perf_counter() - begun)
            if answer["plan"] is not None:
                self.load.figures.waits.append((answer["plan"]["round"], time.time()))
                await self._work(answer["plan"])
            elif answer["finished"]:
                return
            else:
                await asyncio.sleep(answer["retry_seconds"])

    async def _work(self, plan: Mapping[str, Any]) -> None:
        if self.load.download:
            await self.connection.send("GET", f"/v1/artifacts/{plan['weights']}", self.token)
        if self.load.train:
            await asyncio.sleep(self.load.train * random.uniform(0.5, 1.5))
        body = self.load.update(plan)
        status, said = await self._upload(plan, body)
        while self.load.buffered and status == 503:  # a new model is being made
            await asyncio.sleep(1)
            status, said = await self._upload(plan, body)
        if self.load.buffered and status == 200 and json.loads(said)["outcome"] == "late":
            return  # the last model was made
        if status != 200 or json.loads(said)["outcome"] != "accepted":
            self.load.figures.errors.append(f"upload: {status} {said[:200]!r}")
            return
        self.load.count(plan["round"])
        if not self.load.wait and not self.load.buffered:
            await asyncio.sleep(json.loads(said)["retry_seconds"])

    async def _upload(self, plan: Mapping[str, Any], body: bytes) -> tuple[int, bytes]:
        begun = time.perf_counter()
        answer = await self.connection.send("PUT", f"/v1/tasks/{plan['task_id']}/result", self.token, body)
        self.load.figures.uploads.append(time.perf_counter() - begun)
        return answer


class Load:
    """Everything that the devices share."""

    def __init__(self, graph: ModelGraph, server: int, args: argparse.Namespace) -> None:
        self.wait, self.start, self.download, self.train = args.wait, args.start, args.download, args.train
        self.buffered, self.figures = args.buffered, Figures()
        self.server, self._graph, self._devices = server, graph, args.devices
        generator = np.random.default_rng(0)
        shapes = full_mask(graph).shapes
        self._tensors = {
            name: Dense(generator.normal(0, 0.01, shape).astype(np.float32)) for name, shape in shapes.items()
        }

    size = 0
    """Bytes of the last update."""

    def update(self, plan: Mapping[str, Any]) -> bytes:
        """Return an update for a plan."""
        result = LocalResult(
            task_id=plan["task_id"],
            device_id=plan["device_id"],
            round=plan["round"],
            samples=100,
            steps=4,
            loss=1.0,
            accuracy=0.5,
            telemetry=TELEMETRY,
        )
        body = encode_result(Report(result, plan["mask"], self._tensors), self._graph)
        self.size = len(body)
        return body

    def count(self, number: int) -> None:
        """Note an accepted update, and the server's memory now and then."""
        if self.buffered:
            number = sum(self.figures.accepted.values()) // self._devices
        count = self.figures.accepted.get(number, 0) + 1
        self.figures.accepted[number] = count
        if count in (10, self._devices):
            self.figures.memory.setdefault(number, {})[count] = _resident(self.server)


async def _enrol(host: str, port: int, key: str, number: int, load: Load, gate: asyncio.Semaphore) -> Device:
    asked = Enrolment(enrolment_id=f"enrolment-{number}", profile=PROFILE, software="load", name=f"device-{number:05d}")
    connection = Connection(host, port)
    async with gate:
        status, body = await connection.send("POST", "/v1/devices", key, dumps(asked).encode())
    if status not in (200, 201):
        raise SystemExit(f"a device could not join: {status} {body!r}")
    return Device(connection, asked.name or "", loads(Enrolled, body).token, load)


async def _run(load: Load, host: str, port: int, key: str, devices: int) -> None:
    gate = asyncio.Semaphore(16)
    fleet = await asyncio.gather(*(_enrol(host, port, key, number, load, gate) for number in range(devices)))
    server, own = _processor_seconds(load.server), time.process_time()
    await asyncio.gather(*(device.run() for device in fleet))
    load.figures.server_seconds = _processor_seconds(load.server) - server
    load.figures.own_seconds = time.process_time() - own


def _model() -> Bundle:
    with seeded(0):
        model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 10))
    return make_bundle(model, "load", torch.zeros(2, 64))


def _processes(pid: int) -> list[int]:
    """Return the server's processes: the first, and those that it started."""
    return [pid, *children(pid)]


def _processor_seconds(pid: int) -> float:
    ticks = 0
    for process in _processes(pid):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> dict[int, float]:
    """Return the megabytes of every process of the server."""
    found = {}
    for process in _processes(pid):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        found[process] = sum(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))
    return found


def _report(load: Load, rounds: list[dict[str, Any]], devices: int, wait: float) -> None:
    figures = load.figures
    opened = {one["number"]: one["opened_at"] for one in rounds}
    seconds = max(one["done_at"] for one in rounds) - min(opened.values())
    total = sum(figures.accepted.values())
    print(
        f"{devices} devices, {len(rounds)} rounds, updates of {load.size / 1000:.1f} KB, {len(figures.errors)} errors"
    )
    print(f"accepted updates   {total} in {seconds:.1f} s: {total / seconds:.0f} a second")
    if not wait:
        print(f"poll               {_spread(figures.polls)}")
    waits = [moment - opened[number] for number, moment in figures.waits]
    print(f"round to task      p50 {statistics.median(waits):.2f} s, last {max(waits):.2f} s after the opening")
    print(f"upload             {_spread(figures.uploads)}")
    print(
        f"processor time     {1000 * figures.server_seconds / total:.1f} ms of the server and "
        f"{1000 * figures.own_seconds / total:.1f} ms of the devices for each update, with its polls"
    )
    for number, seen in sorted(figures.memory.items()):
        if len(seen) == 2:
            first, last = seen.values()
            most = max(last[process] - first.get(process, 0) for process in last)
            before, after = sum(first.values()), sum(last.values())
            change = f"{before:.0f} MB after 10 updates, {after:.0f} MB after {devices}"
            print(f"memory, round {number}    {change}; one process by {most:+.1f} MB at most")
    for error in figures.errors[:5]:
        print(error)


def _spread(seconds: list[float]) -> str:
    ordered = sorted(seconds)
    p50, p99 = (1000 * ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.99))
    return f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, {len(ordered)} of them"


def main() -> None:
    """Serve, load, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--buffered", action="store_true", help="no rounds to wait for: a new model every N updates")
    parser.add_argument("--train", type=float, default=0.0, help="seconds that devices train, half to one and a half")
    parser.add_argument("--workers", type=int, default=2, help="processes of the server")
    parser.add_argument("--wait", type=float, default=0.0, help="seconds that a poll may wait")
    parser.add_argument("--start", type=float, default=4.0, help="seconds within which devices begin to poll")
    parser.add_argument("--download", action="store_true", help="fetch the weights of every task")
    parser.add_argument("--database", help="URL of a PostgreSQL to use")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder, bundle = Path(name), _model()
        write_bundle(bundle, folder / "model.zip")
        mode = "buffered" if args.buffered else "rounds"
        text = _FEDERATION.format(rounds=args.rounds, devices=args.devices, mode=mode)
        text += _BUFFERING.format(devices=args.devices) if args.buffered else ""
        (folder / "federation.toml").write_text(text)
        options = ["--state", f"{folder}/state", "--port", "0", "--json", "--log-level", "warning"]
        options += ["--workers", str(args.workers)]
        options += ["--database", args.database] if args.database else []
        command = [sys.executable, "-m", "edgefl", "serve", f"{folder}/federation.toml", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                ready = json.loads(server.stdout.readline())
                url = httpx.URL(ready["url"])
                load = Load(bundle.graph, server.pid, args)
                key = ready["federations"][0]["join_key"]
                uvloop.run(_run(load, url.host, url.port or 80, key, args.devices))
                admin = (folder / "state" / "admin-token").read_text().strip()
                answer = httpx.get(f"{url}/v1/federations/load/rounds", headers={"Authorization": f"Bearer {admin}"})
                _report(load, answer.json()["rounds"], args.devices, args.wait)
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
