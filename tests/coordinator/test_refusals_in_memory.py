"""The memory of a real coordinator after a thousand refused requests of each kind: what it was before, within 10 %."""

import gzip
import itertools
import os
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from edgefl.values import Enrolment, dumps
from tests.cli.running_coordinator import Running, coordinator, write_federation
from tests.values.samples import PROFILE

DEVICES = 25
COUNT = 1000
THREADS = 4
BOMB = gzip.compress(bytes(150 * 2**20), 9)
LISTS = gzip.compress(b"[" + b",".join([b"[]"] * 349_525) + b"]")
PROFILE_PATH = "/v1/devices/me/profile"


@dataclass(frozen=True)
class Member:
    """A device that joined, and its task."""

    client: httpx.Client
    task: str

    @property
    def result(self) -> str:
        return f"/v1/tasks/{self.task}/result"


Send = Callable[[Running, Member], object]


def aborted(running: Running, sent: bytes) -> None:
    url = urlsplit(running.url)
    with socket.create_connection((url.hostname, url.port)) as connection:
        connection.sendall(sent)


def gzipped(member: Member, path: str, content: bytes) -> object:
    return member.client.put(path, content=content, headers={"Content-Encoding": "gzip"})


KINDS: dict[str, Send] = {
    "random updates": lambda running, member: member.client.put(member.result, content=os.urandom(20_000)),
    "updates of no task": lambda running, member: member.client.put("/v1/tasks/none/result", content=bytes(20_000)),
    "updates that unpack to much": lambda running, member: gzipped(member, member.result, BOMB),
    "updates that are not gzip": lambda running, member: gzipped(member, member.result, os.urandom(1000)),
    "updates that are too large": lambda running, member: member.client.put(member.result, content=bytes(10**6)),
    "profiles of lists": lambda running, member: gzipped(member, PROFILE_PATH, LISTS),
    "profiles that are none": lambda running, member: member.client.put(PROFILE_PATH, content=b"[1]" * 10_000),
    "unknown paths": lambda running, member: member.client.get(f"/nowhere/{time.monotonic_ns()}"),
    "unknown artifacts": lambda running, member: member.client.get("/v1/artifacts/sha256:" + "0" * 64),
    "unknown tokens": lambda running, member: member.client.get("/v1/session", headers={"Authorization": "Bearer x"}),
    "what is not HTTP": lambda running, member: aborted(running, os.urandom(200)),
    "requests that break off": lambda running, member: aborted(
        running, b"PUT /v1/devices/me/profile HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx"
    ),
    "polls that break off": lambda running, member: aborted(
        running,
        b"POST /v1/tasks/next?wait=1 HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n\r\n"
        % member.client.headers["Authorization"].encode(),
    ),
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("refusals")
    file = write_federation(folder)
    file.write_text(
        file.read_text()
        .replace("devices = 2", f"devices = {DEVICES}")
        .replace("wait_for = 2", f"wait_for = {DEVICES}")
        .replace('"60 s"', '"3600 s"')
    )
    with coordinator(folder / "state", str(file), "--log-level", "warning") as started:
        yield started


@pytest.fixture(scope="module")
def members(running: Running) -> Iterator[list[Member]]:
    clients = [httpx.Client(base_url=running.url, timeout=60) for _ in range(DEVICES)]
    for number, client in enumerate(clients):
        enrolment = Enrolment(
            enrolment_id=f"{number:032}", name=f"device-{number}", software="edgefl 0", profile=PROFILE
        )
        key = {"Authorization": f"Bearer {running.key_of('digits')}"}
        token = client.post("/v1/devices", content=dumps(enrolment), headers=key).json()["token"]
        client.headers["Authorization"] = f"Bearer {token}"
    yield [Member(client, _task(client)) for client in clients]
    for client in clients:
        client.close()


def _task(client: httpx.Client) -> str:
    while True:
        plan = client.post("/v1/tasks/next?wait=5").json()["plan"]
        if plan is not None:
            return str(plan["task_id"])


def resident_bytes(running: Running) -> int:
    lines = Path(f"/proc/{running.process.pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_what_it_was_after_a_thousand_refusals(running: Running, members: list[Member], kind: str) -> None:
    send = KINDS[kind]

    def some(count: int) -> None:
        with ThreadPoolExecutor(THREADS) as threads:
            for _ in threads.map(
                lambda member: send(running, member), itertools.islice(itertools.cycle(members), count)
            ):
                pass

    some(50)
    before = resident_bytes(running)
    some(COUNT)
    time.sleep(1)
    assert resident_bytes(running) <= 1.1 * before


@pytest.mark.thorough
def test_memory_is_what_it_was_after_large_bundles_that_are_none(running: Running) -> None:
    token = (running.state / "admin-token").read_text().strip()
    content = os.urandom(8 * 2**20)

    def send(_: int) -> int:
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.post(f"{running.url}/v1/bundles", content=content, headers=headers, timeout=60).status_code

    before = resident_bytes(running)
    with ThreadPoolExecutor(THREADS) as threads:
        assert set(threads.map(send, range(60))) == {400}
    time.sleep(1)
    assert resident_bytes(running) <= 1.1 * before
