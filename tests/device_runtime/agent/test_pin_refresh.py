"""Pins of a device are kept current by its coordinator alone, and no answer of anybody takes them away."""

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from device_runtime.agent.agent import Agent
from device_runtime.agent.agent_home import AgentHome, Identity
from device_runtime.agent.backoff import Backoff
from device_runtime.agent.client import CoordinatorClient
from device_runtime.agent.device_clock import DeviceClock
from device_runtime.agent.pin_refresh import PinRefresh
from device_runtime.agent.transport import HttpTransport, Reply, Request, Sink, WrongServerError
from edgefl.pinned_tls import PinnedContext
from edgefl.pins import pin_of_key
from tests.device_runtime.http_coordinator import Asked, serving_http
from tests.tls_certificates import new_key, pin_of, write_certificate

MINE, OTHER = new_key(), new_key()
PIN, NEXT = pin_of(MINE), pin_of_key(b"next")


class Clock(DeviceClock):
    now = 0.0

    def uptime(self) -> float:
        return self.now


@dataclass
class Device:
    """A device that has joined, and its coordinator."""

    home: AgentHome
    client: CoordinatorClient
    context: PinnedContext
    refresh: PinRefresh
    clock: Clock
    answer: list[Any]
    """Status and body of the next answers."""
    asked: list[str] = field(default_factory=list)

    @property
    def pins(self) -> tuple[str, ...]:
        """What it has stored, which is what it uses."""
        identity = self.home.identity()
        assert identity is not None
        assert frozenset(identity.pins) == self.context.pins
        return identity.pins


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    answer: list[Any] = [200, {"schema": "edgefl.pins/1", "pins": [PIN, NEXT]}]
    asked: list[str] = []

    def answers(request: Asked) -> tuple[int, Mapping[str, str], bytes]:
        asked.append(f"{request.method} {request.path} {request.headers.get('authorization')}")
        return answer[0], {}, answer[1] if isinstance(answer[1], bytes) else json.dumps(answer[1]).encode()

    with serving_http(answers, write_certificate(tmp_path, MINE)) as url:
        home = AgentHome(tmp_path / "home")
        home.save_identity(Identity(url, "e", "d", "token", federation="digits", pins=(PIN,)))
        context, clock = PinnedContext([PIN]), Clock()
        transport = HttpTransport(url, tls=context)
        client = CoordinatorClient(transport, "token")
        yield Device(home, client, context, PinRefresh(home, client, context, clock), clock, answer, asked)
        transport.close()


def test_pins_are_asked_for_at_the_start_and_then_daily(device: Device) -> None:
    for now in (0.0, 10.0, 86_000.0):
        device.clock.now = now
        device.refresh.refresh_if_due()
    assert device.asked == ["GET /v1/pins Bearer token"]
    assert device.pins == (PIN, NEXT)
    device.clock.now = 86_400.0
    device.refresh.refresh_if_due()
    assert len(device.asked) == 2
    identity = device.home.identity()
    assert identity is not None
    assert (identity.token, identity.federation) == ("token", "digits")


def test_pins_are_asked_for_once_the_coordinator_uses_another_key(device: Device) -> None:
    device.refresh.refresh_if_due()
    device.context.used = NEXT
    device.refresh.refresh_if_due()
    assert len(device.asked) == 2


@pytest.mark.parametrize(
    "answer",
    [
        [200, {"schema": "edgefl.pins/1", "pins": []}],
        [200, {"schema": "edgefl.pins/1", "pins": [NEXT]}],
        [200, {"schema": "edgefl.pins/1", "pins": [PIN, PIN]}],
        [200, {"schema": "edgefl.pins/1", "pins": [PIN, "sha256:short"]}],
        [200, {"schema": "edgefl.pins/1", "pins": [PIN, *(pin_of_key(bytes([n])) for n in range(8))]}],
        [200, {"schema": "edgefl.pins/1", "pins": [PIN, 7]}],
        [200, {"schema": "edgefl.other/1", "pins": [PIN, NEXT]}],
        [200, b"<html>a proxy's page</html>"],
        [404, {"error": {"problem": "there is no such route", "fix": "Ask for another."}}],
        [503, b""],
        [307, b""],
    ],
    ids=[
        *("none", "without the key in use", "one twice", "an invalid one", "too many", "a number", "another document"),
        *("a page", "an older coordinator", "a failure", "a redirect"),
    ],
)
def test_an_answer_of_no_use_changes_nothing_and_stops_nothing(device: Device, answer: list[Any]) -> None:
    device.answer[:] = answer
    device.refresh.refresh_if_due()
    assert list(device.pins) == [PIN]
    device.answer[:] = [200, {"schema": "edgefl.pins/1", "pins": [PIN, NEXT]}]
    device.clock.now = 90_000.0
    device.refresh.refresh_if_due()
    assert list(device.pins) == [PIN, NEXT]


def test_after_a_failure_the_next_try_is_soon(device: Device) -> None:
    device.answer[:] = [503, b""]
    device.refresh.refresh_if_due()
    device.clock.now = 601.0
    device.refresh.refresh_if_due()
    assert len(device.asked) == 2


def test_somebody_else_cannot_change_the_pins_and_gets_nothing(tmp_path: Path) -> None:
    asked: list[str] = []

    def answers(request: Asked) -> tuple[int, Mapping[str, str], bytes]:
        asked.append(request.path)
        return 200, {}, json.dumps({"schema": "edgefl.pins/1", "pins": [pin_of(OTHER)]}).encode()

    with serving_http(answers, write_certificate(tmp_path, OTHER)) as url:
        home = AgentHome(tmp_path / "home")
        identity = Identity(url, "e", "d", "token", pins=(PIN,))
        home.save_identity(identity)
        context = PinnedContext([PIN])
        transport = HttpTransport(url, tls=context)
        client = CoordinatorClient(transport, "token")
        PinRefresh(home, client, context).refresh_if_due()
        with pytest.raises(WrongServerError):
            client.poll(0)
        transport.close()
    assert asked == []
    assert home.identity() == identity


class WrongServer:
    """A transport that always finds somebody else."""

    sent = 0

    def send(self, request: Request, sink: Sink | None = None) -> Reply:
        self.sent += 1
        raise WrongServerError("this is not the coordinator that was paired", fix="Look.")

    def close(self) -> None:
        pass


def run(tmp_path: Path, transport: WrongServer, *, has_connected: bool) -> list[str]:
    home = AgentHome(tmp_path / "home")
    home.save_identity(Identity("https://here", "e", "d", "token", pins=(PIN,)))
    said: list[str] = []
    client = CoordinatorClient(transport, "token")
    agent = Agent(home, client, lambda name: pytest.fail(name), backoff=Backoff(0.0001, 0.0002), say=said.append)
    agent._has_connected = has_connected
    with pytest.raises(WrongServerError):
        agent.run(threading.Event())
    return said


def test_an_agent_that_finds_somebody_else_at_its_start_ends_at_once(tmp_path: Path) -> None:
    transport = WrongServer()
    run(tmp_path, transport, has_connected=False)
    assert transport.sent == 1


def test_an_agent_that_had_found_its_coordinator_tries_for_a_while_and_not_for_ever(tmp_path: Path) -> None:
    transport = WrongServer()
    said = run(tmp_path, transport, has_connected=True)
    assert transport.sent == 17
    assert all("nothing was sent" in line for line in said)


def test_a_home_keeps_pins_when_its_token_is_forgotten(tmp_path: Path) -> None:
    home = AgentHome(tmp_path)
    home.save_identity(Identity("https://here", "e", "d", "token", federation="digits", pins=(PIN, NEXT)))
    home.forget_token()
    identity = home.identity()
    assert identity is not None
    assert identity.token is None
    assert (identity.coordinator, identity.federation, identity.pins) == ("https://here", "digits", (PIN, NEXT))


def test_an_older_identity_has_no_pins_and_damaged_pins_are_no_identity(tmp_path: Path) -> None:
    home = AgentHome(tmp_path)
    old = {"coordinator": "https://here", "enrolment_id": "e", "device_id": "d", "token": "t"}
    (tmp_path / "identity.json").write_text(json.dumps(old))
    assert home.identity() == Identity("https://here", "e", "d", "t")
    for pins in (["sha256:short"], "sha256", 7, [PIN, PIN]):
        (tmp_path / "identity.json").write_text(json.dumps(old | {"pins": pins}))
        assert home.identity() is None
