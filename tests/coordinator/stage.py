"""A federation whose moves and clock are the test's."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coordinator.polling.poll_response import next_response
from coordinator.rounds.context import Context
from coordinator.rounds.state_machine import RoundStateMachine
from coordinator.rounds.uploads import UploadQueue
from coordinator.storage.records import Device, Federation
from edgefl.values import Assignment, ClientPlan, Outcome, loads
from tests.coordinator.fleet import Clock, answer, enrol, running

__all__ = ["Stage", "assignment", "until"]


def assignment(context: Context, device: Device) -> Assignment:
    return loads(Assignment, next_response(context, device).body)


@dataclass
class Stage:
    """A federation and its clock."""

    context: Context
    clock: Clock
    intake: UploadQueue
    federation: Federation | None = None

    def begin(self, devices: int = 2, **changes: Any) -> list[Device]:
        self.federation = running(self.context, **changes)
        return [enrol(self.context, self.federation, f"device-{number}") for number in range(devices)]

    def advance(self, moves: int = 1) -> float:
        assert self.federation is not None
        wait = 0.0
        for _ in range(moves):
            federation = self.context.store.federations.get(self.federation.id)
            assert federation is not None
            wait = RoundStateMachine(self.context, federation).advance()
        return wait

    def plan(self, device: Device) -> ClientPlan:
        plan = assignment(self.context, device).plan
        assert plan is not None
        return plan

    def has_task(self, device: Device) -> bool:
        return assignment(self.context, device).plan is not None

    def upload(self, device: Device, plan: ClientPlan, body: bytes | None = None, **changes: Any) -> Outcome:
        body = answer(self.context, plan, **changes) if body is None else body
        return asyncio.run(self.intake.deliver(device, plan.task_id, body, len(body))).outcome

    def do(self, device: Device, **changes: Any) -> Outcome:
        return self.upload(device, self.plan(device), **changes)

    @property
    def state(self) -> str:
        return str(self.round.state)

    @property
    def round(self) -> Any:
        assert self.federation is not None
        return self.context.store.rounds.latest(self.federation.id)

    def weights(self, number: int) -> Any:
        assert self.federation is not None
        done = self.context.store.rounds.get(self.federation.id, number)
        assert done is not None
        assert done.next_model is not None
        return self.context.repository.arrays(done.next_model)


def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)
