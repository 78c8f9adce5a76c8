"""TLS with pins: the key decides and nothing else, and nobody else gets a byte of a request."""

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from device_runtime.agent.transport import HttpTransport, Request, WrongServerError
from device_runtime.profiler.network import measure_speed
from edgefl.errors import EdgeFLError
from edgefl.pinned_tls import PinnedContext, WrongPinError
from tests.tls_certificates import new_key, pin_of, recording, write_certificate

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
MINE, OTHER = new_key(), new_key()
REQUEST = Request("GET", "/v1/pins", "edgefl-device-secret")


def asked(url: str, *pins: str) -> int:
    """Send a request with a secret over the device's transport; return the status."""
    transport = HttpTransport(url, tls=PinnedContext(pins))
    try:
        return transport.send(REQUEST).status
    finally:
        transport.close()


@pytest.mark.parametrize(
    ("name", "days"),
    [("127.0.0.1", (-1, 1)), ("another.example", (-1, 1)), ("127.0.0.1", (-20, -10)), ("another.example", (10, 20))],
    ids=["right name", "wrong name", "expired", "wrong name and not yet valid"],
)
def test_with_the_right_key_names_and_dates_do_not_matter(name: str, days: tuple[int, int], tmp_path: Path) -> None:
    with recording(write_certificate(tmp_path, MINE, name=name, days=days), OK) as server:
        assert asked(server.url, pin_of(MINE)) == 200
        assert asked(server.url, pin_of(OTHER), pin_of(MINE)) == 200
    assert all(b"edgefl-device-secret" in received for received in server.received)


def test_with_another_key_nothing_is_sent_and_the_error_says_what_to_do(tmp_path: Path) -> None:
    with recording(write_certificate(tmp_path, OTHER), OK) as server:
        with pytest.raises(WrongServerError) as caught:
            asked(server.url, pin_of(MINE))
        with pytest.raises(EdgeFLError, match="not the coordinator that was paired"):
            measure_speed(server.url, "edgefl-key-secret", tls=PinnedContext([pin_of(MINE)]))
    assert server.received == [b"", b""]
    assert pin_of(OTHER) in caught.value.problem
    assert "Nothing was sent" in caught.value.fix
    assert "new pairing code" in caught.value.fix


def test_the_operators_client_checks_pins_too(tmp_path: Path) -> None:
    with recording(write_certificate(tmp_path, MINE, name="another.example"), OK) as server:
        with httpx.Client(verify=PinnedContext([pin_of(MINE)]), trust_env=False) as client:
            assert client.get(server.url).status_code == 200
        with pytest.raises(WrongPinError):
            httpx.get(server.url, verify=PinnedContext([pin_of(OTHER)]), trust_env=False)
        assert server.received[1] == b""


def test_a_certificate_that_an_authority_signed_does_not_replace_a_pin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = write_certificate(tmp_path, OTHER)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with recording(certificate, OK) as server:
        transport = HttpTransport(server.url)
        assert transport.send(REQUEST).status == 200  # without pins it is trusted
        transport.close()
        with pytest.raises(WrongServerError):
            asked(server.url, pin_of(MINE))


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    away = b"HTTP/1.1 307 Away\r\nLocation: http://127.0.0.1:1/v1/pins\r\nContent-Length: 0\r\n\r\n"
    with recording(write_certificate(tmp_path, MINE), away) as server:
        assert asked(server.url, pin_of(MINE)) == 307


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_an_old_version_of_tls_is_refused(newest: ssl.TLSVersion, tmp_path: Path) -> None:
    with (
        recording(write_certificate(tmp_path, MINE), OK, newest=newest) as server,
        pytest.raises(EdgeFLError, match="cannot be reached"),
    ):
        asked(server.url, pin_of(MINE))
    assert server.received == [b""]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_tls_1_2_is_accepted(tmp_path: Path) -> None:
    newest = ssl.TLSVersion.TLSv1_2
    with recording(write_certificate(tmp_path, MINE), OK, newest=newest) as server:
        assert asked(server.url, pin_of(MINE)) == 200


def test_pins_may_be_replaced_between_connections(tmp_path: Path) -> None:
    context = PinnedContext([pin_of(OTHER)])
    with recording(write_certificate(tmp_path, MINE), OK) as server:
        transport = HttpTransport(server.url, tls=context)
        with pytest.raises(WrongServerError):
            transport.send(REQUEST)
        assert context.used is None
        context.pins = frozenset([pin_of(MINE)])
        assert json.loads(transport.send(REQUEST).body) == {}
        assert context.used == pin_of(MINE)
        transport.close()


def handshake_in_memory(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Let two sides talk as they do inside another connection."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)]
    while sides:
        for side in list(sides):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
                sides.remove(side)


def test_a_connection_inside_another_one_is_checked_too(tmp_path: Path) -> None:
    """As through a proxy that is itself reached over TLS."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(write_certificate(tmp_path, MINE))
    handshake_in_memory(PinnedContext([pin_of(MINE)]), server)
    with pytest.raises(WrongPinError):
        handshake_in_memory(PinnedContext([pin_of(OTHER)]), server)


def test_what_is_not_a_certificate_has_no_pin() -> None:
    context = PinnedContext([pin_of(MINE)])
    with pytest.raises(WrongPinError, match="no certificate"):
        context.check(None)
    with pytest.raises(WrongPinError, match="cannot be read"):
        context.check(b"\x30\x00")


@contextlib.contextmanager
def proxy(target: int) -> Iterator[str]:
    """A proxy that leads every tunnel to one port of this machine, whatever it is asked for."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    near, far = listener.accept()[0], socket.create_connection(("127.0.0.1", target))
                    near.recv(65536)
                    near.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                    threads = [threading.Thread(target=copy, args=pair) for pair in ((near, far), (far, near))]
                    for thread in threads:
                        thread.start()
                    for thread in threads:
                        thread.join()
                    near.close()
                    far.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def copy(one: socket.socket, other: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
    with contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_WR)


def test_a_proxy_may_pass_on_what_is_encrypted_and_read_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "https://coordinator.example:8443"
    monkeypatch.setenv("no_proxy", "")
    with recording(write_certificate(tmp_path, MINE), OK) as server, proxy(server.port) as address:
        monkeypatch.setenv("https_proxy", address)
        assert asked(url, pin_of(MINE)) == 200
    with recording(write_certificate(tmp_path, OTHER, name="coordinator.example"), OK) as between:
        with proxy(between.port) as address:
            monkeypatch.setenv("https_proxy", address)
            with pytest.raises(WrongServerError):
                asked(url, pin_of(MINE))
        assert between.received == [b""]


def test_no_pins_are_an_error_and_not_a_connection_that_trusts_everybody() -> None:
    with pytest.raises(EdgeFLError, match="no pins"):
        PinnedContext([])
