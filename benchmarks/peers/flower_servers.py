"""Flower's deployment as its guide starts it: a SuperLink, SuperNodes, and an app that is handed to them.

All of them listen on the loopback interface only, with Flower's own defaults.
"""

import contextlib
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.peers.environment import FLOWER, flower_environment
from benchmarks.peers.processes import started

__all__ = ["do_rounds", "flower_servers"]

_HOST = "127.0.0.1"
_PATIENCE = 60.0
_PYPROJECT = """\
[project]
name = "echo"
version = "1.0.0"
description = "Clients that send back what they got"
license = "Apache-2.0"
dependencies = []
[tool.hatch.build.targets.wheel]
packages = ["."]
[tool.flwr.app]
publisher = "nobody"
[tool.flwr.app.components]
serverapp = "flower_echo:server_app"
clientapp = "flower_echo:client_app"
[tool.flwr.app.config]
rounds = {rounds}
clients = {clients}
weights = "{weights}"
ends = "{ends}"
"""
_CONNECTION = """\
[superlink]
default = "here"
[superlink.here]
address = "{host}:{port}"
insecure = true
"""


@contextlib.contextmanager
def flower_servers(folder: Path, clients: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a SuperLink and its SuperNodes, and yield the SuperLink's process."""
    environment, (port, *ports) = flower_environment(folder), free_ports(clients + 1)
    (folder / "config.toml").write_text(_CONNECTION.format(host=_HOST, port=port), encoding="utf-8")
    superlink = [str(FLOWER / "bin" / "flower-superlink"), "--insecure", "--host", _HOST, "--port", str(port)]
    superlink += ["--disable-runtime-dependency-installation"]
    supernode = [str(FLOWER / "bin" / "flower-supernode"), "--insecure", "--superlink", f"{_HOST}:{port}"]
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(started(superlink, environment, folder / "superlink.log"))
        _wait_for(port, folder / "superlink.log")
        for number, own in enumerate(ports):
            command = [*supernode, "--host", _HOST, "--port", str(own), "--node-config", f"number={number}"]
            stack.enter_context(started(command, environment, folder / f"supernode-{number}.log"))
        yield server


def do_rounds(folder: Path, weights: Path, clients: int, rounds: int, *, seconds: float) -> Sequence[float]:
    """Hand the app to the SuperLink, and return when each of its rounds ended."""
    app, ends = folder / "app", folder / "ends.json"
    app.mkdir()
    shutil.copy(Path(__file__).with_name("flower_echo.py"), app)
    text = _PYPROJECT.format(rounds=rounds, clients=clients, weights=weights, ends=ends)
    (app / "pyproject.toml").write_text(text, encoding="utf-8")
    command = [str(FLOWER / "bin" / "flwr"), "run", str(app), "here"]
    said = subprocess.run(command, env=flower_environment(folder), capture_output=True, text=True)
    if said.returncode:
        raise SystemExit(f"{said.stdout}{said.stderr}\nFlower did not take the app; what it said stands above")
    until = time.monotonic() + seconds
    while not ends.exists():
        if time.monotonic() > until:
            raise SystemExit(f"{_tail(folder / 'superlink.log')}\nFlower did not end within {seconds:.0f} s")
        time.sleep(0.2)
    time.sleep(0.2)  # the file is there a moment before what it holds
    found: list[float] = json.loads(ends.read_text(encoding="utf-8"))
    return found


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((_HOST, 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


def _wait_for(port: int, log: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection((_HOST, port), timeout=1):
            return
        time.sleep(0.2)
    raise SystemExit(f"{_tail(log)}\nthe SuperLink does not listen; what it said stands above")


def _tail(log: Path) -> str:
    return log.read_text(encoding="utf-8")[-4000:]
