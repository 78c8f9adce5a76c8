"""Races between engines: each in a process of its own, one run at a time, in turns.

Engines slow each other down in one process, and a noisy moment of the machine must hit all of them alike. A benchmark
starts its racers with `Racer`, lets them run with `race`, and is itself the racer when `serve` is called.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

__all__ = ["Racer", "Times", "race", "serve"]

READY = "ready\n"


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of one racer's runs."""

    median: float
    fastest: float


class Racer:
    """An engine in its own process, which makes one run when asked."""

    def __init__(self, command: Sequence[str], python: str = sys.executable) -> None:
        self._process = subprocess.Popen(
            [python, "-W", "ignore", "-m", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_WAIT_POLICY": "PASSIVE"},
        )
        if self._pipe(self._process.stdout).readline() != READY:
            raise SystemExit(f"{' '.join(command)} did not start; what it said stands above")

    def run(self) -> float:
        """Make one run and return its seconds."""
        pipe = self._pipe(self._process.stdin)
        pipe.write("run\n")
        pipe.flush()
        return float(self._pipe(self._process.stdout).readline())

    def stop(self) -> None:
        """End the process."""
        self._process.communicate(timeout=30)

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None  # it was asked for
        return pipe


def race(racers: Mapping[str, Racer], rounds: int, warm_up: int = 3) -> dict[str, Times]:
    """Let the racers run in turns, and stop them."""
    seconds: dict[str, list[float]] = {name: [] for name in racers}
    for turn in range(warm_up + rounds):
        for name, racer in racers.items():
            took = racer.run()
            if turn >= warm_up:
                seconds[name].append(took)
    for racer in racers.values():
        racer.stop()
    return {name: Times(statistics.median(values), min(values)) for name, values in seconds.items()}


def serve(run: Callable[[], object]) -> None:
    """Be a racer: make a run for every line of standard input."""
    print(READY, end="", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        run()
        print(time.perf_counter() - start, flush=True)
