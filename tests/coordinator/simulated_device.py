"""A device over real HTTP that answers without training, and keeps a note of everything that it was promised."""

import threading
import time
from dataclasses import dataclass, field

from device_runtime.agent.client import BusyError, CoordinatorClient, RejectedError
from device_runtime.agent.transport import HttpTransport, UnreachableError
from edgefl.values import ClientPlan, Enrolment, Outcome
from tests.coordinator.fleet import update_of
from tests.device_runtime.federation import bundle
from tests.values.samples import PROFILE

_PAUSE = 0.05


@dataclass
class SimulatedDevice:
    """One device. Its update of round r adds `shift + r` to every weight."""

    name: str
    key: str
    urls: list[str]
    """The workers' addresses, asked in turn when one does not answer."""
    shift: float
    samples: int
    sent: dict[str, bytes] = field(default_factory=dict)
    """Updates that were sent, by task, whether or not an answer came."""
    promised: set[str] = field(default_factory=set)
    """Tasks whose updates the coordinator said it has."""
    late: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)
    bodies: dict[str, bytes] = field(default_factory=dict)

    def run(self, stop: threading.Event) -> None:
        """Work until the federation is over."""
        transports = [HttpTransport(url) for url in self.urls]
        try:
            self._work([CoordinatorClient(transport) for transport in transports], stop)
        finally:
            for transport in transports:
                transport.close()

    def _work(self, clients: list[CoordinatorClient], stop: threading.Event) -> None:
        turn = 0
        asked = Enrolment(enrolment_id=f"enrolment-{self.name}", profile=PROFILE, software="simulated", name=self.name)
        token: str | None = None
        while not stop.is_set():
            client = clients[turn % len(clients)]
            client.token = token
            try:
                if token is None:
                    token = client.enrol(asked, self.key).token
                    continue
                answer = client.poll(1.0)
                if answer.finished:
                    return
                if answer.plan is not None:
                    self._do(client, answer.plan)
                turn += 1
            except (UnreachableError, BusyError):
                turn += 1
                time.sleep(_PAUSE)
            except RejectedError as error:  # the task is over; anything else is a problem of the coordinator
                if "no artifact" not in error.problem:
                    self.problems.append(f"{self.name}: {error}")

    def _do(self, client: CoordinatorClient, plan: ClientPlan) -> None:
        assert plan.weights is not None
        assert plan.mask_body is not None
        weights, mask = self._download(client, plan.weights), self._download(client, plan.mask_body)
        body = update_of(weights, mask, bundle().graph, plan, self.shift + plan.round, self.samples)
        self.sent[plan.task_id] = body
        outcome = client.upload(plan.task_id, body).outcome
        if outcome is Outcome.LATE:
            if plan.task_id in self.promised:
                self.problems.append(f"{self.name}: task {plan.task_id} was accepted, then late")
            self.late.add(plan.task_id)
        else:
            self.promised.add(plan.task_id)

    def _download(self, client: CoordinatorClient, digest: str) -> bytes:
        if digest not in self.bodies:
            pieces: list[bytes] = []
            client.download(digest, lambda status, piece: pieces.append(piece))
            self.bodies[digest] = b"".join(pieces)
        return self.bodies[digest]
