"""What a whole task costs the device, by the Java client and by the Python agent: for `benchmarks.java_client`."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.java_client_task import write_samples
from edgefl.coordinator_process import children
from tests.android_demo.coordinator import PROFILE, fed, pairing_uri, serving

__all__ = ["measure_tasks"]

EXPORT = (
    "import sys; from pathlib import Path; from export.model_source import open_source; "
    "from export.bundle import make_bundle; from edgefl.artifacts.bundle import write_bundle; "
    "s = open_source('cnn4'); write_bundle(make_bundle(s.model, s.name, s.example), Path(sys.argv[1]))"
)
FEDERATION = """
[federation]
name = "{name}"
model = "cnn4.zip"
[strategy]
name = "fedavg"
width = "full"
learning_rate = 0.003
momentum = 0.9
[work]
batch_size = 32
[rounds]
count = 1
[selection]
devices = 1
[budget]
adapt = false
[sample]
raw_dtype = "uint8"
normalisation = {{ mean = [0.286], std = [0.353], scale = 255 }}
"""
SAMPLE_SECONDS = 0.03


@dataclass(frozen=True, slots=True)
class Cost:
    """What one task took, from the start of the client to its end."""

    seconds: float
    processor_seconds: float
    peak_bytes: int
    down_bytes: int
    up_bytes: int
    training_seconds: float


def measure_tasks(jar: Path, count: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        subprocess.run([sys.executable, "-W", "ignore", "-c", EXPORT, str(folder / "cnn4.zip")], check=True)
        write_samples(folder / "samples.npz", [1, 28, 28], classes=10)
        (folder / "profile.json").write_text(json.dumps(PROFILE), encoding="utf-8")
        names = [f"{language}-{number}" for number in range(count + 1) for language in ("java", "python")]
        files = []
        for name in names:
            files.append(folder / f"{name}.toml")
            files[-1].write_text(FEDERATION.format(name=name), encoding="utf-8")
        with serving(folder, *files) as served:
            found = {name: _task(jar, folder, served, name) for name in names}
    print("a task of CNN4 from the client's start to its end, medians of", count, "in turns, with their range")
    print("| client | seconds | of them training | CPU seconds | peak memory, MB | down, kB | up, kB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for language in ("python", "java"):
        _report(language, [found[f"{language}-{number}"] for number in range(1, count + 1)])


def _report(language: str, costs: Sequence[Cost]) -> None:
    columns = (
        [cost.seconds for cost in costs],
        [cost.training_seconds for cost in costs],
        [cost.processor_seconds for cost in costs],
        [cost.peak_bytes / 1e6 for cost in costs],
        [cost.down_bytes / 1e3 for cost in costs],
        [cost.up_bytes / 1e3 for cost in costs],
    )
    cells = [f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})" for values in columns]
    print(f"| {'`edgefl join`' if language == 'python' else '`java -jar`'} | {' | '.join(cells)} |")


def _task(jar: Path, folder: Path, served: dict[str, Any], name: str) -> Cost:
    """Let a new device do one task."""
    where = ["--data", str(folder / "samples.npz"), "--home", str(folder / "homes" / name), "--threads", "2"]
    options = ["--profile", str(folder / "profile.json"), "--tasks", "1", "--quiet", "--validation", "0"]
    client = ["java", "-jar", str(jar)] if name.startswith("java") else [sys.executable, "-m", "edgefl"]
    began = time.perf_counter()
    process = subprocess.Popen([*client, "join", pairing_uri(served, name), *where, *options])
    with _MemoryOf(process.pid) as memory:
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
    if status:
        raise SystemExit(f"{name} ended with {status}")
    row = json.loads(fed(served, "telemetry", name, "--format", "json"))["rows"][0]
    return Cost(
        seconds=seconds,
        processor_seconds=used.ru_utime + used.ru_stime,
        peak_bytes=memory.peak_bytes,
        down_bytes=row["down_bytes"],
        up_bytes=row["up_bytes"],
        training_seconds=row["round_seconds"],
    )


class _MemoryOf:
    """Samples the memory of a process and those that it started; pages that they share count once."""

    def __init__(self, pid: int) -> None:
        self._pid, self._ended, self.peak_bytes = pid, threading.Event(), 0
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "_MemoryOf":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            processes = [self._pid, *children(self._pid)]
            self.peak_bytes = max(self.peak_bytes, sum(map(_proportional_bytes, processes)))


def _proportional_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0  # it has ended
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
