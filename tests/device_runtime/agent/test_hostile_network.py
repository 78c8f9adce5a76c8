"""A hostile coordinator on a real socket: no reply takes more of the owner's day, memory or patience than it may."""

import gzip
import json
import random
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from device_runtime.agent import transport as transport_module
from device_runtime.agent.agent import Agent, AgentSettings
from device_runtime.agent.agent_home import AgentHome
from device_runtime.agent.artifact_cache import ArtifactCache
from device_runtime.agent.client import BusyError, CoordinatorClient, RejectedError, UnknownDeviceError
from device_runtime.agent.owner_policy import OwnerPolicy
from device_runtime.agent.traffic import Traffic, TrafficSpentError
from device_runtime.agent.transport import HttpTransport, UnreachableError
from device_runtime.profiler.network import measure_speed
from edgefl.coordinator_url import trusting
from edgefl.errors import EdgeFLError
from edgefl.values import Enrolled, digest_of, dumps
from tests.device_runtime.hostile import raw_server, sent_forever
from tests.device_runtime.http_coordinator import Asked, serving_http
from tests.values.samples import PROFILE

DIGEST = digest_of(b"anything")
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
MIB = 2**20
BUFFERS = 8 * MIB
"""What two sockets may hold between the server and a device that no longer reads."""
SOCKET = 2**16
"""What the system takes for a device with a limit before the device can stop it."""

FLOODS = {
    "a body": sent_forever(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n", bytes(65536)),
    "a body without a length": sent_forever(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", bytes(65536)),
    "an error": sent_forever(b"HTTP/1.1 500 No\r\nContent-Length: 999999999999\r\n\r\n", bytes(65536)),
    "answers that say that another one will follow": sent_forever(
        b"", b"HTTP/1.1 103 Early Hints\r\nLink: " + b"x" * 8000 + b"\r\n\r\n"
    ),
    "extensions of chunks": sent_forever(CHUNKED, b"1;" + b"e" * 8000 + b"\r\n.\r\n"),
    "a header": sent_forever(b"HTTP/1.1 200 OK\r\n", b"X: " + b"y" * 8000 + b"\r\n"),
    "trailers": sent_forever(CHUNKED + b"0\r\n", b"X: " + b"y" * 8000 + b"\r\n"),
}


def noting(asked: list[Asked]) -> Callable[[Asked], tuple[int, dict[str, str], bytes]]:
    def answer(one: Asked) -> tuple[int, dict[str, str], bytes]:
        asked.append(one)
        return 200, {}, b""

    return answer


OPEN: list[HttpTransport] = []


@pytest.fixture(autouse=True)
def _closing() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()


def client_of(url: str, most: int | None) -> CoordinatorClient:
    OPEN.append(HttpTransport(url, traffic=Traffic(most=most)))
    return CoordinatorClient(OPEN[-1], "token")


def ask_for(what: str, client: CoordinatorClient, folder: Path) -> None:
    if what == "poll":
        client.poll(0)
    else:
        ArtifactCache(folder).get(DIGEST, client.download)


@pytest.mark.parametrize("flood", FLOODS.values(), ids=list(FLOODS))
@pytest.mark.parametrize("ask", ["poll", "download"])
def test_no_reply_takes_more_than_is_left_of_the_day(
    flood: Callable[[socket.socket], None], ask: str, tmp_path: Path
) -> None:
    most = 3 * MIB
    with raw_server(flood) as (url, taken):
        client = client_of(url, most)
        with pytest.raises(EdgeFLError):
            ask_for(ask, client, tmp_path)
        assert client.traffic.total <= most + MIB  # and what the system holds of a connection
        client._transport.close()
    assert taken[0] <= most + BUFFERS
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= most


@pytest.mark.parametrize("flood", ["answers that say that another one will follow", "extensions of chunks", "an error"])
@pytest.mark.parametrize("ask", ["poll", "download"])
def test_without_a_limit_of_the_day_a_reply_has_limits_of_its_own(flood: str, ask: str, tmp_path: Path) -> None:
    with raw_server(FLOODS[flood]) as (url, taken):
        client = client_of(url, None)
        with pytest.raises(UnreachableError):
            ask_for(ask, client, tmp_path)
        client._transport.close()
    assert taken[0] <= 3 * BUFFERS


def test_what_is_thrown_away_is_counted_too() -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\nLink: " + b"x" * 8000 + b"\r\n\r\n"

    def answer(connection: socket.socket) -> None:
        connection.sendall(hint * 50 + b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    with raw_server(answer) as (url, taken):
        client = client_of(url, None)
        with pytest.raises(BusyError):
            client.poll(0)
        client._transport.close()
    assert taken[0] <= client.traffic.down <= taken[0] + 2  # TCP counts the end of a connection as one


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the Debian package openssl")
def test_encryption_counts_as_it_comes_over_the_network(tmp_path: Path) -> None:
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "certificate.pem"]
    subprocess.run([*make.split(), *names], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    letters = 2000

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with context.wrap_socket(connection, server_side=True) as encrypted:
            encrypted.recv(65536)
            encrypted.sendall(b"HTTP/1.1 500 No\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % letters)
            for _ in range(letters):
                encrypted.send(b"x")  # a record of its own, with a header and a checksum

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        OPEN.append(HttpTransport(url, tls=trusting(str(tmp_path / "certificate.pem"))))
        client = CoordinatorClient(OPEN[-1], "token")
        with pytest.raises(BusyError):
            client.poll(0)
        thread.join()
    assert client.traffic.down > 20 * letters


def test_nothing_is_asked_once_the_day_is_used_up() -> None:
    asked: list[Asked] = []
    with serving_http(noting(asked)) as url:
        client = client_of(url, 0)
        with pytest.raises(TrafficSpentError):
            client.poll(0)
        with pytest.raises(TrafficSpentError):
            client.upload("one", bytes(10))
        with pytest.raises(TrafficSpentError):
            client.download(DIGEST, lambda status, piece: None)
    assert asked == []


def test_a_result_that_is_larger_than_what_is_left_is_not_half_sent() -> None:
    asked: list[Asked] = []
    with serving_http(noting(asked)) as url, pytest.raises(TrafficSpentError):
        client_of(url, MIB).upload("one", random.Random(1).randbytes(2 * MIB))
    assert asked == []


def test_downloads_leave_enough_of_the_day_to_refuse_a_task() -> None:
    traffic = Traffic(down=900, most=1000, kept_back=150)
    traffic.check()
    with traffic.downloading(), pytest.raises(TrafficSpentError):
        traffic.check()
    traffic.check()


@pytest.mark.parametrize(
    "body", [b'{"a": "' + b"x" * MIB + b'"}', b"[" * 200_000, gzip.compress(bytes(40 * MIB)), b"{" + b'"a":' * 60_000]
)
@pytest.mark.parametrize("status", [200, 404])
def test_a_json_answer_of_any_size_or_depth_is_no_answer(body: bytes, status: int) -> None:
    headers = {"Content-Encoding": "gzip"} if body[:2] == b"\x1f\x8b" else {}
    with serving_http(lambda asked: (status, headers, body)) as url, pytest.raises(UnreachableError):
        client_of(url, None).poll(0)


@pytest.mark.parametrize("to", ["http://127.0.0.1:1/", "file:///etc/passwd", "//127.0.0.1:1/", "/v1/other"])
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(status: int, to: str) -> None:
    asked: list[str] = []

    def answer(one: Asked) -> tuple[int, dict[str, str], bytes]:
        asked.append(one.path)
        return status, {"Location": to}, b""

    with serving_http(answer) as url, pytest.raises(BusyError, match=str(status)):
        client_of(url, None).poll(0)
    assert asked == ["/v1/tasks/next?wait=0"]


def test_no_cookie_is_kept() -> None:
    asked: list[Asked] = []

    def answer(one: Asked) -> tuple[int, dict[str, str], bytes]:
        asked.append(one)
        return 200, {"Set-Cookie": f"a{len(asked)}=b; Path=/"}, b'{"kind": "assignment"}'

    with serving_http(answer) as url:
        client = client_of(url, None)
        for _ in range(2):
            with pytest.raises(BusyError):
                client.poll(0)
    assert ["cookie" in one.headers for one in asked] == [False, False]


def test_a_reply_that_comes_in_drops_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(1000):
            connection.sendall(b" ")
            time.sleep(0.05)

    request = transport_module.Request("POST", "/v1/tasks/next", "token", reply_seconds=0.5)
    with raw_server(answer) as (url, taken):
        transport = HttpTransport(url)
        with pytest.raises(UnreachableError, match="ReadTimeout"):
            transport.send(request)
        transport.close()
    assert taken[0] < 200


@pytest.mark.parametrize("said", ["1e308", "10**12", "-5", "nan", "inf", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_wait_of_any_length_becomes_one_of_reason(said: str) -> None:
    with serving_http(lambda asked: (503, {"Retry-After": said}, b"")) as url, pytest.raises(BusyError) as caught:
        client_of(url, None).poll(0)
    assert caught.value.retry_seconds is None or 0 <= caught.value.retry_seconds <= 86_400


def test_what_a_coordinator_says_cannot_reach_the_terminal_as_more_than_text() -> None:
    evil = "\x1b]0;owned\x07\x1b[2Jgone\r\n\u202elamina\x9b31m" * 100
    body = json.dumps({"error": {"problem": evil, "fix": "x"}}).encode()
    with serving_http(lambda asked: (404, {}, body)) as url, pytest.raises(RejectedError) as caught:
        client_of(url, None).poll(0)
    assert caught.value.problem.isprintable()
    assert len(caught.value.problem) <= 500


@pytest.mark.parametrize("flood", FLOODS.values(), ids=list(FLOODS))
def test_a_speed_test_ends_where_it_should(flood: Callable[[socket.socket], None]) -> None:
    with raw_server(flood) as (url, taken), pytest.raises(EdgeFLError):
        measure_speed(url)
    assert taken[0] <= BUFFERS


@pytest.mark.parametrize("status", [403, 500])
def test_what_comes_before_a_device_has_joined_counts_for_the_day_however_often_it_starts(
    status: int, tmp_path: Path
) -> None:
    asked: list[Asked] = []
    said = json.dumps({"error": {"problem": "no", "fix": "y"}, "more": "x" * 200_000}).encode()

    def answer(one: Asked) -> tuple[int, dict[str, str], bytes]:
        asked.append(one)
        return status, {}, said

    limit = 500_000
    with serving_http(answer) as url:
        for _ in range(6):  # a service starts again whenever it ends
            OPEN.append(HttpTransport(url))
            settings = AgentSettings(policy=OwnerPolicy(bytes_a_day=limit))
            agent = Agent(AgentHome(tmp_path), CoordinatorClient(OPEN[-1]), pytest.fail, settings=settings)
            with pytest.raises(EdgeFLError):
                agent.enrol(url, PROFILE, "key")
    assert len(asked) == 3
    assert 2 * len(said) < AgentHome(tmp_path).usage().traffic_bytes <= limit + SOCKET


def test_what_ends_an_agent_counts_for_the_day(tmp_path: Path) -> None:
    said = json.dumps({"error": {"problem": "no", "fix": "y"}, "more": "x" * 200_000}).encode()
    joined = dumps(Enrolled(device_id="pi-1", token="token")).encode()

    def answer(one: Asked) -> tuple[int, dict[str, str], bytes]:
        return (200, {}, joined) if one.path == "/v1/devices" else (401, {}, said)

    with serving_http(answer) as url:
        OPEN.append(HttpTransport(url))
        agent = Agent(AgentHome(tmp_path), CoordinatorClient(OPEN[-1]), pytest.fail)
        agent.enrol(url, PROFILE, "key")
        with pytest.raises(UnknownDeviceError):
            agent.run(threading.Event())
    assert AgentHome(tmp_path).usage().traffic_bytes > len(said)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_a_key_for_this_machine_does_not_go_through_a_proxy(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    direct: list[Asked] = []
    through: list[Asked] = []
    with serving_http(noting(direct)) as url, serving_http(noting(through)) as proxy:
        monkeypatch.setenv(variable, proxy)
        for address in (url, url.replace("127.0.0.1", "localhost")):
            with pytest.raises(BusyError):  # an empty answer
                client_of(address, None).poll(0)
    assert (len(direct), len(through)) == (2, 0)
