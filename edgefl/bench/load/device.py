"""Simulated devices of a load test, their behaviour, and the recorded figures.

A device polls, comes back when the server tells it to, and uploads an update each round. Without training time, it
uploads as soon as it gets a task, so the server is as busy as it can be.
"""

import asyncio
import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from edgefl.bench.load.connection import Connection
from edgefl.masks import full_mask
from edgefl.model_graph import ModelGraph
from edgefl.strategies.transfer_sizes import USUAL_RESULT
from edgefl.wire import Dense, ResultBody, encode_result

__all__ = ["Behaviour", "LoadDevice", "Figures", "Load"]

FIRST_LOOK = 10
"""Number of updates in a round after which the server's memory is first recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Behaviour of the devices."""

    devices: int = 100
    rounds: int = 3
    wait: float = 0.0
    """Seconds that the coordinator may hold a poll open."""
    start: float = 2.0
    """Seconds over which the first polls are spread: no fleet starts in one millisecond."""
    train: float = 0.0
    """Mean training time in seconds; it varies by half."""
    buffered: bool = False
    """No rounds: a new model after every `devices` updates."""
    download: bool = False
    """Whether devices download the weights of every task."""


@dataclass
class Figures:
    """Recorded figures."""

    polls: list[float] = field(default_factory=list)
    uploads: list[float] = field(default_factory=list)
    tasks: list[tuple[int, float]] = field(default_factory=list)
    """Round and time of every received task."""
    accepted: dict[int, int] = field(default_factory=dict)
    memory: dict[int, dict[int, dict[int, int]]] = field(default_factory=dict)
    """Resident bytes of the server's processes, by round and number of updates in it."""
    errors: list[str] = field(default_factory=list)
    server_seconds: float = 0.0
    """CPU time of the server from the first poll to the last."""
    own_seconds: float = 0.0
    """CPU time of the devices meanwhile."""


class Load:
    """State shared by all devices."""

    def __init__(self, graph: ModelGraph, behaviour: Behaviour, memory: Callable[[], dict[int, int]]) -> None:
        self.behaviour, self.figures = behaviour, Figures()
        self._graph, self._memory = graph, memory
        generator = np.random.default_rng(0)
        self._tensors = {
            name: Dense(generator.normal(0, 0.01, shape).astype(np.float32))
            for name, shape in full_mask(graph).shapes.items()
        }
        self.update_bytes = 0

    def update(self, plan: Mapping[str, Any]) -> bytes:
        """Return an update for a plan."""
        result = replace(
            USUAL_RESULT, task_id=plan["task_id"], device_id=plan["device_id"], round=plan["round"], samples=100
        )
        body = encode_result(ResultBody(result, plan["mask"], self._tensors), self._graph)
        self.update_bytes = len(body)
        return body

    def count(self, number: int) -> None:
        """Count an accepted update, and record the server's memory near the start and at the end of a round."""
        if self.behaviour.buffered:
            number = sum(self.figures.accepted.values()) // self.behaviour.devices
        count = self.figures.accepted.get(number, 0) + 1
        self.figures.accepted[number] = count
        if count in (FIRST_LOOK, self.behaviour.devices):
            self.figures.memory.setdefault(number, {})[count] = self._memory()


@dataclass
class LoadDevice:
    """One simulated device."""

    connection: Connection
    token: str
    load: Load

    async def run(self) -> None:
        """Poll and upload until the federation ends."""
        behaviour, figures = self.load.behaviour, self.load.figures
        await asyncio.sleep(random.uniform(0, behaviour.start))
        while True:
            begun = time.perf_counter()
            path = f"/v1/tasks/next?wait={behaviour.wait:g}"
            status, body = await self.connection.send("POST", path, self.token)
            if status != 200:
                figures.errors.append(f"poll: {status} {body[:200]!r}")
                await asyncio.sleep(1)
                continue
            answer = json.loads(body)
            figures.polls.append(time.perf_counter() - begun)
            if answer["plan"] is not None:
                figures.tasks.append((answer["plan"]["round"], time.time()))
                await self._work(answer["plan"])
            elif answer["finished"]:
                await self.connection.close()
                return
            else:
                await asyncio.sleep(answer["retry_seconds"])

    async def _work(self, plan: Mapping[str, Any]) -> None:
        behaviour = self.load.behaviour
        if behaviour.download:
            await self.connection.send("GET", f"/v1/artifacts/{plan['weights']}", self.token)
        if behaviour.train:
            await asyncio.sleep(behaviour.train * random.uniform(0.5, 1.5))
        body = self.load.update(plan)
        status, said = await self._upload(plan, body)
        while behaviour.buffered and status == 503:  # a new model is being made
            await asyncio.sleep(1)
            status, said = await self._upload(plan, body)
        if behaviour.buffered and status == 200 and json.loads(said)["outcome"] == "late":
            return  # the last model was made
        if status != 200 or json.loads(said)["outcome"] != "accepted":
            self.load.figures.errors.append(f"upload: {status} {said[:200]!r}")
            return
        self.load.count(plan["round"])
        if not behaviour.wait and not behaviour.buffered:
            await asyncio.sleep(json.loads(said)["retry_seconds"])

    async def _upload(self, plan: Mapping[str, Any], body: bytes) -> tuple[int, bytes]:
        begun = time.perf_counter()
        answer = await self.connection.send("PUT", f"/v1/tasks/{plan['task_id']}/result", self.token, body)
        self.load.figures.uploads.append(time.perf_counter() - begun)
        return answer
