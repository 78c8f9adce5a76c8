"""Devices that do what a test says, over the real protocol: one that refuses, and one whose upload takes its time."""

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from device_runtime.agent.client import CoordinatorClient
from device_runtime.agent.transport import HttpTransport
from edgefl.values import ClientPlan, Enrolment, Reason, Refusal
from tests.coordinator.fleet import update_of
from tests.device_runtime.federation import bundle
from tests.values.samples import PROFILE

__all__ = ["HandDriven"]


@dataclass
class HandDriven:
    """A device."""

    url: str
    client: CoordinatorClient

    @classmethod
    @contextlib.contextmanager
    def joined(cls, url: str, key: str, name: str) -> "Iterator[HandDriven]":
        """Let it take part, until the end of the block."""
        transport = HttpTransport(url)
        try:
            client = CoordinatorClient(transport)
            enrolment = Enrolment(enrolment_id=f"enrolment-of-{name}", profile=PROFILE, software="by hand", name=name)
            client.token = client.enrol(enrolment, key).token
            yield cls(url, client)
        finally:
            transport.close()

    def task(self) -> ClientPlan:
        """Fetch its task."""
        plan = self.client.poll(20).plan
        assert plan is not None
        return plan

    def refuse(self, plan: ClientPlan, message: str) -> None:
        """Say that it will not do it."""
        self.client.refuse(plan, Refusal(reason=Reason.TEMPERATURE, message=message))

    @contextlib.contextmanager
    def uploading(self, plan: ClientPlan) -> Iterator[None]:
        """Send half of its update, and the other half after the block."""
        body = self._update(plan)
        address = urlsplit(self.url)
        assert address.hostname is not None
        with socket.create_connection((address.hostname, address.port or 80), timeout=30) as connection:
            connection.sendall(
                f"PUT /v1/tasks/{plan.task_id}/result HTTP/1.1\r\nHost: {address.netloc}\r\n"
                f"Authorization: Bearer {self.client.token}\r\nContent-Type: application/vnd.safetensors\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                + body[: len(body) // 2]
            )
            yield
            connection.sendall(body[len(body) // 2 :])
            answer = connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200"), answer

    def _update(self, plan: ClientPlan) -> bytes:
        assert plan.weights is not None
        assert plan.mask_body is not None
        pieces: dict[str, bytearray] = {plan.weights: bytearray(), plan.mask_body: bytearray()}
        for digest, data in pieces.items():
            self.client.download(digest, lambda _, piece, data=data: data.extend(piece))  # type: ignore[misc]
        weights, mask = bytes(pieces[plan.weights]), bytes(pieces[plan.mask_body])
        return update_of(weights, mask, bundle().graph, plan, 0.0, samples=10)
