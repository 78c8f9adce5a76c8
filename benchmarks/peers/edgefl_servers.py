"""EdgeFL's deployment: `edgefl serve` with its defaults, and devices in processes of their own."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx

from benchmarks.peers.environment import CHECKOUT
from benchmarks.peers.processes import started
from edgefl.artifacts.bundle import Bundle, write_bundle
from tests.cli.running_coordinator import Running, coordinator

__all__ = ["counted_bytes", "do_rounds", "edgefl_server"]

_NAME = "echo"
_FEDERATION = """\
[federation]
name = "{name}"
model = "model.zip"
[strategy]
name = "fedavg"
width = "full"
[rounds]
count = {rounds}
deadline = "24 h"
[selection]
devices = {clients}
wait_for = {clients}
"""
_COUNTED = "edgefl_body_bytes_total"


@contextlib.contextmanager
def edgefl_server(folder: Path, bundle: Bundle, clients: int, rounds: int) -> Iterator[Running]:
    """Start a coordinator with one federation."""
    write_bundle(bundle, folder / "model.zip")
    file = folder / "federation.toml"
    file.write_text(_FEDERATION.format(name=_NAME, rounds=rounds, clients=clients), encoding="utf-8")
    with coordinator(folder / "state", str(file), "--log-level", "warning", PYTHONPATH=str(CHECKOUT)) as server:
        yield server


def do_rounds(folder: Path, server: Running, clients: int, *, seconds: float) -> Sequence[float]:
    """Let devices take part until the federation is over, and return when each round ended."""
    environment = os.environ | {"EDGEFL_JOIN_KEY": server.key_of(_NAME), "PYTHONPATH": str(CHECKOUT)}
    module = [sys.executable, "-m", "benchmarks.peers.edgefl_echo", server.url]
    logs = [folder / f"device-{number}.log" for number in range(clients)]
    with contextlib.ExitStack() as stack:
        devices = [
            stack.enter_context(started([*module, str(folder / f"home-{number}"), str(number)], environment, log))
            for number, log in enumerate(logs)
        ]
        for device, log in zip(devices, logs, strict=True):
            if device.wait(seconds):
                raise SystemExit(f"{log.read_text()}\na device failed; what it said stands above")
    rounds = _asked(server, f"/v1/federations/{_NAME}/rounds").json()["rounds"]
    return sorted(one["done_at"] for one in rounds)


def counted_bytes(server: Running) -> float:
    """Return the bytes of bodies that the coordinator has counted, in and out."""
    lines = _asked(server, "/metrics").text.splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith(_COUNTED))


def _asked(server: Running, path: str) -> httpx.Response:
    token = (server.state / "admin-token").read_text().strip()
    return httpx.get(f"{server.url}{path}", headers={"Authorization": f"Bearer {token}"}, timeout=30).raise_for_status()
