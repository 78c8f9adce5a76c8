"""The project's own agent as a client under test, in a thread of this process, so that tests can break it."""

import threading
from collections.abc import Callable
from random import Random

from device_runtime.agent.agent import Agent, AgentSettings
from device_runtime.agent.agent_home import AgentHome
from device_runtime.agent.backoff import Backoff
from device_runtime.agent.client import CoordinatorClient
from device_runtime.agent.own_capabilities import own_capabilities
from device_runtime.agent.sample_check import federation_sample
from device_runtime.agent.transport import HttpTransport
from device_runtime.engines import ThreadSettings, open_engine
from device_runtime.local_data import LocalData
from device_runtime.trainer import Trainer
from edgefl.conformance.client_starts import Invitation
from edgefl.data import load
from edgefl.data.sample_check import fitting
from edgefl.pairing import Pairing
from edgefl.values import Capabilities
from tests.values.samples import PROFILE

__all__ = ["FIRST_BACKOFF", "AgentClient"]

FIRST_BACKOFF = 0.1
"""Seconds. The protocol says 1; tests have no time for that."""


class AgentClient:
    """A running agent. Subclasses are broken in one way each."""

    transport: type[HttpTransport] = HttpTransport
    client: type[CoordinatorClient] = CoordinatorClient
    agent: type[Agent] = Agent
    trainer: type[Trainer] = Trainer
    data: type[LocalData] = LocalData
    backoff: Callable[[], Backoff] = staticmethod(lambda: Backoff(first=FIRST_BACKOFF, random=Random(1)))
    settings = AgentSettings(least_wait=0.1, wait_seconds=20.0)
    capabilities: Callable[[], Capabilities] = staticmethod(lambda: own_capabilities("onnx"))

    def __init__(self, invitation: Invitation) -> None:
        self._invitation = invitation
        self.samples: int | None = None
        """Of the training data, once it is read."""
        self._stop = threading.Event()
        self.error: BaseException | None = None
        self._transport = self.transport(invitation.url, tls=Pairing.at(invitation.uri).tls())
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def is_running(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        self._stop.set()
        self._transport.close()
        self._thread.join(20)
        self._transport.close()

    def made(self) -> Agent:
        """Return the agent."""
        home, client = AgentHome(self._invitation.home), self.client(self._transport)
        sample = federation_sample(home, client, self._invitation.key)
        dataset = load(str(self._invitation.data))
        data = self.data.whole(dataset if sample is None else fitting(dataset, sample))
        self.samples = data.samples
        engine = open_engine("onnx", ThreadSettings(1))

        def trainer(device: str) -> Trainer:
            return self.trainer(engine, data, home.checkpoints, threads=1, device_id=device)

        return self.agent(home, client, trainer, settings=self.settings, backoff=self.backoff())

    def _run(self) -> None:
        try:
            agent = self.made()
            can, samples = self.capabilities(), self.samples
            agent.enrol(self._invitation.url, PROFILE, self._invitation.key, capabilities=can, samples=samples)
            agent.run(self._stop)
        except Exception as error:  # a client that ends is what the suite must notice
            self.error = error
