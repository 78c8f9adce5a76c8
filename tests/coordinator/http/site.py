"""A coordinator on a real socket, and what tests of its HTTP edge put into it: federations, devices, an open round.

The round is entered as records, so that a test decides what is open. The driver runs, and finds nothing to do: the
federation wants more devices than there are, and every round has a task of a device that sleeps.
"""

import contextlib
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import httpx

from coordinator.federations.lifecycle import new_key
from coordinator.federations.tokens import OperatorRole, new_token
from coordinator.http.app import make_app
from coordinator.http.operator_tokens import operator_tokens
from coordinator.http.server import CoordinatorServer, listen, make_server
from coordinator.http.server_settings import ServerLimits, ServerSettings
from coordinator.http.services import Services
from coordinator.rounds.context import Context
from coordinator.storage.records import Artifact, Round, Task
from device_runtime.agent.client import CoordinatorClient
from device_runtime.agent.transport import HttpTransport
from edgefl.artifacts.submodel import make_submodel
from edgefl.federation.settings import RoundSettings, SelectionSettings
from edgefl.masks import full_mask
from edgefl.values import ClientPlan, dumps, loads
from edgefl.wire import encode_mask
from tests.coordinator.fleet import enrol, make_context, running, update_of
from tests.device_runtime.federation import bundle, plan_of

DEADLINE = 3600.0
_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""One for all: httpx would load the system's certificates for each client."""


@dataclass
class Site:
    """A coordinator that runs."""

    url: str
    context: Context
    services: Services
    tokens: Mapping[OperatorRole, str]
    server: CoordinatorServer
    thread: threading.Thread
    _clients: list[httpx.Client] = field(default_factory=list)

    def client(self, token: str | None = None, **headers: str) -> httpx.Client:
        """Return a client that shows a token."""
        shown = {} if token is None else {"Authorization": f"Bearer {token}"}
        client = httpx.Client(base_url=self.url, headers=shown | headers, timeout=30, verify=_NO_TLS)
        self._clients.append(client)
        return client

    @cached_property
    def admin(self) -> httpx.Client:
        """Return an operator's client."""
        return self.client(self.admin_token)

    @property
    def admin_token(self) -> str:
        """What an operator shows."""
        return self.tokens[OperatorRole.ADMIN]

    def federation(self, name: str = "digits") -> str:
        """Create and start a federation with one device, which sleeps; return a join key."""
        running(
            self.context,
            name=name,
            selection=SelectionSettings(devices=50, wait_for=1000),
            rounds=RoundSettings(count=3, deadline=DEADLINE),
        )
        self.device(f"asleep-{name}", name)
        return new_key(self.context, name)[1]

    def device(self, name: str, federation: str = "digits") -> str:
        """Let a device in, and return its token."""
        known = self.context.store.federations.get(federation)
        assert known is not None
        enrol(self.context, known, name)
        return f"token-of-{name}"

    def open_round(self, *devices: str, federation: str = "digits") -> list[str]:
        """Open a round with a task for each device; return the tasks' ids."""
        tasks, artifacts, model = _tasks(self.context, federation, [*devices, f"asleep-{federation}"])
        now = self.context.now()
        opened = Round(federation=federation, number=0, model=model, opened_at=now, deadline_at=now + DEADLINE)
        assert self.context.store.rounds.open(opened, tasks, artifacts)
        self.context.wake(devices)
        return [task.id for task in tasks[:-1]]

    def update(self, task_id: str, shift: float = 1.0) -> bytes:
        """Return the update of a device that adds a number to every weight."""
        task = self.context.store.tasks.get(task_id)
        assert task is not None
        plan = loads(ClientPlan, task.plan)
        assert plan.weights is not None
        assert plan.mask_body is not None
        blobs = self.context.blobs
        return update_of(blobs.get(plan.weights), blobs.get(plan.mask_body), bundle().graph, plan, shift, samples=10)

    def keep(self, content: bytes, kind: str = "graph", federation: str = "digits") -> str:
        """Let the devices of a federation download something; return its digest."""
        digest = self.context.blobs.put(content)
        artifact = Artifact(federation=federation, digest=digest, kind=kind, size=len(content))
        self.context.store.artifacts.add([artifact])
        return digest

    def stop(self) -> None:
        """Stop it, and wait for its end."""
        self.server.should_exit = True
        self.thread.join()

    @contextlib.contextmanager
    def agent(self, token: str | None = None) -> Iterator[CoordinatorClient]:
        """Give the protocol as a device speaks it."""
        transport = HttpTransport(self.url)
        try:
            yield CoordinatorClient(transport, token)
        finally:
            transport.close()


@contextlib.contextmanager
def serving(folder: Path, limits: ServerLimits | None = None, context: Context | None = None) -> Iterator[Site]:
    """Serve until the end of the block."""
    limits = limits or ServerLimits()
    context = context or make_context(folder)
    tokens = {role: new_token(role) for role in OperatorRole}
    start = {f"{role}_token": token for role, token in tokens.items()}
    operator_tokens(ServerSettings(state=folder, **start), context.store)  # type: ignore[arg-type]
    app = make_app(context, limits=limits, local=True, state=folder)
    server = make_server(app, ServerSettings(state=folder, port=0, limits=limits))
    started = threading.Event()
    server.on_start = started.set
    with listen("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
        thread.start()
        site = Site(f"http://127.0.0.1:{port}", context, app.state.services, tokens, server, thread)
        try:
            assert started.wait(30)
            yield site
        finally:
            site.stop()
            for client in site._clients:
                client.close()
            context.store.close()
            context.blobs.close()


def _tasks(context: Context, federation: str, devices: Sequence[str]) -> tuple[list[Task], list[Artifact], str]:
    mask = full_mask(bundle().graph)
    submodel = make_submodel(bundle(), mask)
    bodies = {"graph": submodel.training_graph, "weights": submodel.weights, "mask_body": encode_mask(mask)}
    digests = dict(zip(bodies, context.blobs.put_all(list(bodies.values())), strict=True))
    tasks = [
        Task(
            id=f"{federation}-0-{device}",
            federation=federation,
            round=0,
            device=device,
            plan=dumps(plan_of(mask, task_id=f"{federation}-0-{device}", device_id=device, **digests)),
            created_at=context.now(),
        )
        for device in devices
    ]
    kinds = {"graph": "graph", "weights": "weights", "mask_body": "mask"}
    artifacts = [
        Artifact(federation=federation, digest=digests[name], kind=kinds[name], size=len(body), round=0)
        for name, body in bodies.items()
    ]
    return tasks, artifacts, digests["weights"]
