"""Real agents of many simulated devices in one process: `python -m edgefl.simulation.agents FOLDER URL FIRST:END:STEP`.

`edgefl.simulation.over_http` starts it. Each device has the profile of its class, its own samples, and a thread.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from device_runtime.agent.agent import Agent, AgentSettings
from device_runtime.agent.agent_home import AgentHome
from device_runtime.agent.client import CoordinatorClient
from device_runtime.agent.own_capabilities import own_capabilities
from device_runtime.agent.transport import HttpTransport
from device_runtime.engines import ThreadSettings, open_engine
from device_runtime.trainer import Trainer
from edgefl.artifacts.bundle import read_bundle
from edgefl.errors import EdgeFLError
from edgefl.simulation.fleet import FleetDevice
from edgefl.simulation.request import SimulationRequest, simulation_inputs
from edgefl.values import loads

__all__ = ["main"]

_ONE = ThreadSettings(1)


def main(words: list[str]) -> int:
    """Run the agents of some devices until the federation ends, or until stopped."""
    place, url, which = Path(words[0]), words[1], words[2]
    request = loads(SimulationRequest, (place / "request.json").read_bytes())
    fleet = simulation_inputs(request, read_bundle(place / "model.zip")).fleet
    mine = fleet[slice(*map(int, which.split(":")))]
    stop, failures = threading.Event(), list[str]()

    def work(device: FleetDevice) -> None:
        try:
            _agent(device, place / "homes" / device.device_id, url).run(stop)
        except EdgeFLError as error:
            failures.append(f"{device.device_id}: {error.problem}")

    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda number, frame: stop.set())
    threads = [threading.Thread(target=work, args=(device,), daemon=True) for device in mine]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(0.2)
    sys.stderr.write("\n".join(failures))
    return 1 if failures else 0


def _agent(device: FleetDevice, folder: Path, url: str) -> Agent:
    home = AgentHome(folder)
    home.lock()
    engine = open_engine("onnx", _ONE)

    def trainer(device_id: str) -> Trainer:
        return Trainer(engine, device.data, home.checkpoints, threads=1, device_id=device_id)

    agent = Agent(home, CoordinatorClient(HttpTransport(url)), trainer, settings=AgentSettings(wait_seconds=20.0))
    can = device.capabilities or own_capabilities("onnx")
    key, samples = os.environ.get("EDGEFL_JOIN_KEY"), device.data.samples
    agent.enrol(url, device.profile, key, name=device.device_id, capabilities=can, samples=samples)
    return agent


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
