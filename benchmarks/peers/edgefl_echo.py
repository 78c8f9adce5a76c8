"""A device that sends back its weights slightly changed: the real agent with a trainer that does not train.

    EDGEFL_JOIN_KEY=KEY python -m benchmarks.peers.edgefl_echo URL HOME NUMBER

It adds a small number of its own, so that no two bodies are the same and the agent's cache is of no use.
"""

import os
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np

from device_runtime.agent.agent import Agent
from device_runtime.agent.agent_home import AgentHome
from device_runtime.agent.client import CoordinatorClient
from device_runtime.agent.transport import HttpTransport
from device_runtime.trainer import FinishedTask, Trainer, TrainingTask
from edgefl.values import LocalResult
from edgefl.wire import Dense, ResultBody, encode_result
from tests.values.samples import PROFILE, TELEMETRY

__all__ = ["Echo", "main"]


class Echo(Trainer):
    """Sends back what it got with a little added, and a report as long as any."""

    def __init__(self, little: float, device_id: str) -> None:
        self.joules = 0.0
        self._little, self._name = np.float32(little), device_id

    def run(self, task: TrainingTask, stop: threading.Event | None = None) -> FinishedTask:
        """Return the weights of a task as its result."""
        plan = task.plan
        result = LocalResult(
            task_id=plan.task_id,
            device_id=self._name,
            round=plan.round,
            samples=100,
            steps=1,
            loss=1.0,
            telemetry=TELEMETRY,
        )
        tensors = {name: Dense(array + self._little) for name, array in task.weights.items()}
        body = encode_result(ResultBody(result, plan.mask, tensors, None, plan.seed), task.mask.graph)
        return FinishedTask(body, result, task.weights, task.mask)


def main(url: str, home: Path, number: int) -> None:
    """Take part until the federation is over."""
    agent = Agent(AgentHome(home), CoordinatorClient(HttpTransport(url)), partial(Echo, 1e-3 * (1 + number)))
    agent.enrol(url, PROFILE, os.environ["EDGEFL_JOIN_KEY"], name=f"device-{number}")
    agent.run(threading.Event())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
