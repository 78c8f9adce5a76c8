"""A temporary coordinator: `edgefl serve` in a subprocess, with its own folder and port.

Load tests and simulations over HTTP use it. It listens on 127.0.0.1 only, and is stopped with SIGTERM as systemd would.
Its memory and CPU time are read from /proc, for its first process and the processes it started.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from edgefl.errors import EdgeFLError

__all__ = ["CoordinatorProcess", "children", "running_coordinator"]

_ENOUGH_SECONDS = 20
_LAST_WORDS = 300


@dataclass(frozen=True, slots=True)
class CoordinatorProcess:
    """A running coordinator."""

    pid: int
    host: str
    port: int
    join_key: str
    admin_token: str

    @property
    def url(self) -> str:
        """Its URL."""
        return f"http://{self.host}:{self.port}"

    def processes(self) -> list[int]:
        """Return the server's processes: the first, and those it started."""
        return [self.pid, *sorted(children(self.pid))]

    def processor_seconds(self) -> float:
        """Return the total CPU time of all processes."""
        ticks = 0
        for process in self.processes():
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self) -> dict[int, int]:
        """Return the resident memory of each process."""
        found = {}
        for process in self.processes():
            lines = Path(f"/proc/{process}/status").read_text().splitlines()
            found[process] = sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))
        return found


def children(pid: int) -> set[int]:
    """Return the child processes of a process, started by any of its threads."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {int(child) for task in tasks for child in (task / "children").read_text().split()}


@contextlib.contextmanager
def running_coordinator(
    federation: Path, state: Path, *, workers: int = 1, database: str | None = None
) -> Iterator[CoordinatorProcess]:
    """Start a coordinator with one federation, and stop it at the end."""
    command = [sys.executable, "-m", "edgefl", "serve", str(federation), "--state", str(state), "--port", "0"]
    command += ["--json", "--log-level", "warning", "--workers", str(workers)]
    environment = dict(os.environ) | ({} if database is None else {"EDGEFL_DATABASE": database})
    with tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True, env=environment)
        try:
            yield _ready(process, state, said)
        finally:
            process.terminate()
            try:
                process.communicate(timeout=_ENOUGH_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def _ready(process: "subprocess.Popen[str]", state: Path, said: IO[str]) -> CoordinatorProcess:
    assert process.stdout is not None  # stdout is piped
    line = process.stdout.readline()
    if not line:
        process.wait(timeout=_ENOUGH_SECONDS)
        said.seek(0)
        words = " ".join(said.read().split())
        raise EdgeFLError(
            f"the coordinator did not start: {words[-_LAST_WORDS:]}", fix="Run edgefl serve by itself to see more."
        )
    ready = json.loads(line)
    url = urlsplit(ready["url"])
    token = (state / "admin-token").read_text(encoding="ascii").strip()
    return CoordinatorProcess(
        process.pid, url.hostname or "127.0.0.1", url.port or 80, ready["federations"][0]["join_key"], token
    )
