"""The Java client beside the Python agent: a training step, and a whole task, on one machine in turns.

    python -m benchmarks.java_client [--turns 30] [--tasks 5] [--only steps|tasks]

Steps: CNN4 and the perceptron, batches of 32 and 8, one thread and two. A step is all of it: batch, graph, descent with
momentum. Both clients run the onnxruntime of the Java client; Python gets it in an environment of its own, made by the
first run, and if that fails the ratio is one of two versions, and says so. After as many steps both must have the same
loss. Memory is each process's VmHWM, from its start.

Tasks: one round of a federation with one device, from `java -jar` or `edgefl join` to the end of its process: joining,
download, training, upload. Memory is the largest sum of the processes' proportional set sizes, sampled.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.environments import make_environment
from benchmarks.java_client_rounds import measure_tasks
from benchmarks.java_client_task import write_task
from edgefl.bench.timing import Times, ratio_of
from tests.android_demo.java_client import java_client_jar

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = ROOT / "build"
CASES = [(model, batch, threads) for model in ("cnn4", "mlp") for batch in (32, 8) for threads in (1, 2)]
TURN_SECONDS = 0.15
WARM_UP_SECONDS = 3.0
"""Java compiles what it runs often; a task of some seconds has that behind it soon."""


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--tasks", type=int, default=5)
    parser.add_argument("--only", choices=("steps", "tasks"))
    parser.add_argument("--cases", default="", help="such as cnn4/32/1, separated by commas (default: all)")
    parser.add_argument("--jar", type=Path, help="the client (default: build it)")
    options = parser.parse_args()
    jar = options.jar or java_client_jar()
    if options.only != "tasks":
        _compare_steps(jar, options.turns, options.cases.split(",") if options.cases else [])
    if options.only != "steps":
        measure_tasks(jar, options.tasks)


def _compare_steps(jar: Path, turns: int, chosen: Sequence[str]) -> None:
    python = _python_with(_java_onnxruntime())
    print(f"milliseconds a step, medians of {turns} turns; the ratio with the quartiles of its turns")
    print("| model | batch | threads | Python | Java | Java / Python | memory Python, MB | Java, MB |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for model, batch, threads in CASES:
        if not chosen or f"{model}/{batch}/{threads}" in chosen:
            with tempfile.TemporaryDirectory() as folder:
                write_task(Path(folder), model, batch, threads)
                commands = {
                    "Python": [python, "-m", "benchmarks.java_client_task", folder],
                    "Java": ["java", "-jar", str(jar), "bench", folder],
                }
                print(f"| {model} | {batch} | {threads} | {_row(commands, turns)} |", flush=True)


def _java_onnxruntime() -> str:
    found = re.search(r"<onnxruntime.version>([\d.]+)<", (ROOT / "android_demo/pom.xml").read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit("android_demo/pom.xml does not name its onnxruntime")
    return found[1]


def _python_with(version: str) -> str:
    """Return a Python that has this onnxruntime; if there is none, this one."""
    folder = ENVIRONMENTS / f"onnxruntime-{version}"
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"installing onnxruntime {version} into {folder}", file=sys.stderr, flush=True)
        if make_environment(folder, [f"onnxruntime=={version}", "numpy>=2.0", "safetensors>=0.5"]):
            print(f"onnxruntime {version} cannot be installed: Python runs another version", file=sys.stderr)
            return sys.executable
    return str(python)


def _row(commands: dict[str, list[str]], turns: int) -> str:
    """Run both in turns, and return the row of their numbers."""
    processes = {name: _StepProcess(command) for name, command in commands.items()}
    try:
        losses = set()
        count = _warm_up(processes)
        seconds: dict[str, list[float]] = {name: [] for name in processes}
        for turn in range(turns):
            for name in list(processes) if turn % 2 else reversed(processes):
                answer = processes[name].take(count)
                seconds[name].append(answer["seconds"] / count)
        losses = {processes[name].take(1)["loss"] for name in processes}
        memory = {name: process.peak_bytes() for name, process in processes.items()}
    finally:
        for process in processes.values():
            process.stop()
    engines = {process.engine for process in processes.values()}
    times = {name: Times(tuple(values)) for name, values in seconds.items()}
    ratio = ratio_of(times["Java"], times["Python"])
    numbers = " | ".join(f"{times[name].median * 1e3:.3f}" for name in ("Python", "Java"))
    notes = ("" if len(losses) == 1 else f"; losses {sorted(losses)}") + (
        "" if len(engines) == 1 else f"; {' and '.join(sorted(engines))}"
    )
    megabytes = " | ".join(f"{memory[name] / 1e6:.0f}" for name in ("Python", "Java"))
    return f"{numbers} | {ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f}){notes} | {megabytes}"


def _warm_up(processes: dict[str, "_StepProcess"]) -> int:
    """Let both take the same steps for some seconds, and return how many make a turn."""
    slowest = max(process.take(5)["seconds"] / 5 for process in processes.values())
    count = max(1, round(TURN_SECONDS / slowest))
    for _ in range(max(1, round(WARM_UP_SECONDS / (count * slowest)))):
        for process in processes.values():
            process.take(count)
    return count


class _StepProcess:
    """A client that takes steps on request."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.engine = str(self._heard()["ready"]["engine"])

    def take(self, steps: int) -> dict[str, Any]:
        """Take some steps; return their seconds, and the last loss."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{steps}\n")
        self._process.stdin.flush()
        return self._heard()

    def peak_bytes(self) -> int:
        """Return the most memory that it has had."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))

    def stop(self) -> None:
        """End it."""
        self._process.communicate(timeout=30)

    def _heard(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args} ended with {self._process.wait(30)}")
        found: dict[str, Any] = json.loads(line)
        return found


if __name__ == "__main__":
    main()
