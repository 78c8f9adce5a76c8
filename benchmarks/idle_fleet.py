"""The cost of an idle device to a coordinator, and the size of its records.

    python -m benchmarks.idle_fleet [--devices 500] [--polls 20000] [--rounds 2] [--reconnect]

First a federation that waits for one device more than there are: devices poll without a pause, over connections that
stay open or, with --reconnect, over new ones, as agents do that are told to come back after minutes. Then one of some
rounds: how much its SQLite file grows, indices included, with the devices that join and with the tasks that are done.
"""

import argparse
import asyncio
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

from edgefl.bench.load.device import Behaviour, Load, LoadDevice
from edgefl.bench.load.model import perceptron_bundle
from edgefl.bench.load.run import join_all, served
from edgefl.coordinator_process import CoordinatorProcess
from edgefl.errors import EdgeFLError

__all__ = ["main", "parser"]

_AT_ONCE = 16


def main() -> None:
    """Measure, and print."""
    args = parser().parse_args()
    model = perceptron_bundle()
    idle, busy = Behaviour(devices=args.devices + 1), Behaviour(devices=args.devices, rounds=args.rounds)
    with tempfile.TemporaryDirectory() as name, served(idle, model, Path(name)) as (load, server):
        asyncio.run(_polls(load, server, args.devices, args.polls, reconnect=args.reconnect))
    with tempfile.TemporaryDirectory() as name, served(busy, model, Path(name)) as (load, server):
        asyncio.run(_records(load, server, Path(name) / "state"))


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--devices", type=int, default=500)
    reader.add_argument("--polls", type=int, default=20_000)
    reader.add_argument("--rounds", type=int, default=2)
    reader.add_argument("--reconnect", action="store_true", help="make a new connection for every poll")
    return reader


async def _polls(load: Load, server: CoordinatorProcess, count: int, polls: int, *, reconnect: bool) -> None:
    fleet = await join_all(load, server, count)
    left = iter(range(polls))
    free: asyncio.Queue[LoadDevice] = asyncio.Queue()  # everybody in turn: a device that polls too often is told so
    for device in fleet:
        free.put_nowait(device)

    async def poll() -> None:
        for _ in left:
            device = await free.get()
            status, said = await device.connection.send("POST", "/v1/tasks/next?wait=0", device.token)
            if status != 200:
                raise EdgeFLError(f"a poll was answered with {status} {said[:200]!r}", fix="Try fewer polls a device.")
            if reconnect:
                await device.connection.close()
            free.put_nowait(device)

    before, began = server.processor_seconds(), time.perf_counter()
    await asyncio.gather(*(poll() for _ in range(min(_AT_ONCE, count))))
    seconds, spent = time.perf_counter() - began, server.processor_seconds() - before
    over = "new connections" if reconnect else "open connections"
    print(f"{polls:,} idle polls of {count:,} devices over {over}, {polls / seconds:,.0f} a second")
    print(f"  processor time of the server a poll: {1e3 * spent / polls:.3f} ms", flush=True)
    for device in fleet:
        await device.connection.close()


async def _records(load: Load, server: CoordinatorProcess, state: Path) -> None:
    count, rounds = load.behaviour.devices, load.behaviour.rounds
    empty = _size(state)
    fleet = await join_all(load, server, count)
    with_devices = _size(state)
    await asyncio.gather(*(device.run() for device in fleet))
    if load.figures.errors:
        raise EdgeFLError(load.figures.errors[0], fix="Look into the coordinator's log.")
    tasks = _size(state) - with_devices
    print(f"records of a device: {(with_devices - empty) / count:,.0f} bytes", flush=True)
    print(f"records of a task that was done: {tasks / (count * rounds):,.0f} bytes")


def _size(state: Path) -> int:
    """Return the bytes of the database without what it has free."""
    with closing(sqlite3.connect(state / "coordinator.sqlite")) as database:
        pages, free, size = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
    return int((pages - free) * size)


if __name__ == "__main__":
    main()
