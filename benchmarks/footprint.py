"""Import time of an agent, and its memory while it waits, beyond Python with onnxruntime alone.

    python -m benchmarks.footprint

Every figure is the median of several fresh processes. The idle agent has its engine open and its data (digits) loaded.
"""

import statistics
import subprocess
import sys

RUNS = 7
ONNXRUNTIME = "import os; os.environ['ORT_DISABLE_TELEMETRY'] = '1'\nimport onnxruntime\n"
AGENT = """
import device_runtime.agent.agent, device_runtime.agent.transport, device_runtime.trainer
import device_runtime.engines.onnx, device_runtime.local_data, edgefl.cli.join
"""
IDLE = """
import tempfile
from pathlib import Path
from device_runtime.agent.agent import Agent
from device_runtime.agent.client import CoordinatorClient
from device_runtime.agent.agent_home import AgentHome
from device_runtime.agent.transport import HttpTransport
from device_runtime.engines import ThreadSettings, open_engine
from device_runtime.local_data import LocalData
from device_runtime.trainer import Trainer
from edgefl.data import load
engine, data = open_engine("onnx", ThreadSettings(2)), LocalData.whole(load("digits"))
with tempfile.TemporaryDirectory() as folder:
    home = AgentHome(Path(folder))
    client = CoordinatorClient(HttpTransport("http://127.0.0.1:9"))
    agent = Agent(home, client, lambda name: Trainer(engine, data, home.checkpoints, threads=2, device_id=name))
    try:
        agent.turn(None)
    except Exception as error:
        assert "cannot be reached" in str(error)
"""
MEASURE = """
import time
start = time.perf_counter()
{code}
seconds = time.perf_counter() - start
resident = next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]
print(seconds, resident)
"""


def main() -> None:
    """Print the table."""
    found = {
        name: _measured(code)
        for name, code in {"onnxruntime": ONNXRUNTIME, "agent": AGENT, "idle agent": ONNXRUNTIME + IDLE}.items()
    }
    print(f"medians of {RUNS} processes")
    for name, (seconds, kilobytes) in found.items():
        print(f"  {name:<14} {seconds:6.3f} s   {kilobytes / 1024:6.1f} MiB resident")
    beyond = (found["idle agent"][1] - found["onnxruntime"][1]) / 1024
    print(f"an idle agent takes {beyond:.1f} MiB beyond onnxruntime's own import")


def _measured(code: str) -> tuple[float, float]:
    runs = []
    for _ in range(RUNS):
        command = [sys.executable, "-c", MEASURE.format(code=code)]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        runs.append((float(told[-2]), float(told[-1])))
    return statistics.median(seconds for seconds, _ in runs), statistics.median(size for _, size in runs)


if __name__ == "__main__":
    main()
