"""Engine processes that run in turns: one process per engine, one run at a time.

Engines slow each other down in one process, and a noisy moment of the machine must hit all of them alike. Every second
turn is in reverse order, so that no engine always runs after the same neighbour. Whatever cannot start, because a
package is missing or a file is invalid, is listed with its reason; the others run.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from edgefl.bench.timing import Times
from edgefl.errors import EdgeFLError

__all__ = [
    "StartedProcesses",
    "EngineProcess",
    "energy_per_run",
    "run_interleaved",
    "run_interleaved_and_stop",
    "started_processes",
]

_LAST_WORDS = 300
_ENOUGH_SECONDS = 30


class EngineProcess:
    """An engine in its own process, which does one run on request."""

    def __init__(self, command: Sequence[str], python: str = sys.executable) -> None:
        self._said = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")  # noqa: SIM115 until stop
        self._process = subprocess.Popen(
            [python, "-W", "ignore", "-m", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            # Threads that spin-wait would take the cores from the process whose turn it is.
            env=os.environ | {"OMP_WAIT_POLICY": "PASSIVE"},
        )
        try:
            self.facts: Mapping[str, Any] = self._heard()["ready"]
        except BaseException:
            self.stop()
            raise

    def ask(self, what: str, **more: Any) -> dict[str, Any]:
        """Send a request (see `edgefl.bench.process_loop`) and return the reply."""
        try:
            pipe = self._pipe(self._process.stdin)
            pipe.write(json.dumps({"do": what, **more}) + "\n")
            pipe.flush()
        except BrokenPipeError:
            pass  # it died; the reason is raised where its reply is read
        return self._heard()

    def run(self) -> float:
        """Do one run and return its seconds."""
        return float(self.ask("run")["seconds"])

    def stop(self) -> None:
        """End the process."""
        try:
            self._process.communicate(timeout=_ENOUGH_SECONDS)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self._process.kill()
            self._process.communicate()
        self._said.close()

    def _heard(self) -> dict[str, Any]:
        line = self._pipe(self._process.stdout).readline()
        if not line:
            self._process.wait(timeout=_ENOUGH_SECONDS)
            self._said.seek(0)
            words = self._said.read().strip().splitlines()
            last = words[-1][:_LAST_WORDS] if words else f"exit code {self._process.returncode}"
            raise EdgeFLError(f"its process ended: {last}", fix="Run it alone to see more.")
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise EdgeFLError(answer["failed"], fix=answer["fix"])
        return answer

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None  # it is piped
        return pipe


@dataclass(frozen=True, slots=True)
class StartedProcesses:
    """The processes that started, and the reasons of those that did not."""

    processes: Mapping[str, EngineProcess]
    missing: Mapping[str, str]
    """Reasons by name."""


@contextlib.contextmanager
def started_processes(commands: Mapping[str, Sequence[str]]) -> Iterator[StartedProcesses]:
    """Start a process for each command (a module and its arguments), and stop them all at the end."""
    processes: dict[str, EngineProcess] = {}
    missing: dict[str, str] = {}
    try:
        for name, command in commands.items():
            try:
                processes[name] = EngineProcess(command)
            except EdgeFLError as error:
                missing[name] = str(error)
        yield StartedProcesses(processes, missing)
    finally:
        for process in processes.values():
            process.stop()


def run_interleaved(processes: Mapping[str, EngineProcess], turns: int, warm_up: int = 3) -> dict[str, Times]:
    """Run the processes in turns."""
    names = list(processes)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(warm_up + turns):
        for name in names if turn % 2 == 0 else reversed(names):
            took = _run(name, processes[name])
            if turn >= warm_up:
                seconds[name].append(took)
    return {name: Times(tuple(values)) for name, values in seconds.items()}


def _run(name: str, process: EngineProcess) -> float:
    try:
        return process.run()
    except EdgeFLError as error:
        raise EdgeFLError(f"{name}: {error.problem}", fix=error.fix) from None


def run_interleaved_and_stop(processes: Mapping[str, EngineProcess], turns: int, warm_up: int = 3) -> dict[str, Times]:
    """Run the processes in turns, and stop them."""
    try:
        return run_interleaved(processes, turns, warm_up)
    finally:
        for process in processes.values():
            process.stop()


def energy_per_run(
    processes: Mapping[str, EngineProcess], seconds: float, bursts: int = 3
) -> dict[str, dict[str, Any]]:
    """Return the energy per run of each process: the median of several bursts of runs in turns."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in processes}
    for _ in range(bursts):
        for name, process in processes.items():
            found[name].append(process.ask("energy", seconds=seconds))
    return {name: _middle(values) for name, values in found.items()}


def _middle(values: Sequence[dict[str, Any]]) -> dict[str, Any]:
    each = [value["joules_each"] for value in values]
    middle = statistics.median_low(each)
    chosen = next(value for value in values if value["joules_each"] == middle)
    return chosen | {"lowest_each": min(each), "highest_each": max(each), "bursts": len(each)}
