"""TLS: old versions, weak ciphers, renegotiation and plain text are refused, whatever the system allows."""

import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from coordinator.http.tls import restricted
from tests.cli.running_coordinator import coordinator
from tests.coordinator.http.test_server import certificate

__all__ = ["certificate"]

Address = tuple[str, int]


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> str | None:
    """Let two contexts meet in memory; return the version that they agree on."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(6):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return sides[0].version()


def lenient_server(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    """Return a context as a careless system would make it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


def lenient_client(version: ssl.TLSVersion, ciphers: str = "ALL") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers(f"{ciphers}:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    return context


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize(
    ("version", "ciphers"),
    [
        (ssl.TLSVersion.TLSv1, "ALL"),
        (ssl.TLSVersion.TLSv1_1, "ALL"),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-SHA"),
        (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES256-SHA384"),
        (ssl.TLSVersion.TLSv1_2, "aNULL"),
    ],
)
def test_old_versions_and_weak_ciphers_are_refused_even_where_the_system_allows_them(
    certificate: tuple[Path, Path], version: ssl.TLSVersion, ciphers: str
) -> None:
    client = lenient_client(version, ciphers)
    assert handshake(lenient_server(certificate), client) is not None
    with pytest.raises(ssl.SSLError):
        handshake(restricted(lenient_server(certificate)), client)


@pytest.mark.parametrize(
    ("version", "name"), [(ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")]
)
def test_current_versions_are_accepted(certificate: tuple[Path, Path], version: ssl.TLSVersion, name: str) -> None:
    assert handshake(restricted(lenient_server(certificate)), lenient_client(version)) == name


@pytest.fixture(scope="module")
def address(certificate: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A coordinator that speaks TLS."""
    words = ("--certificate", str(certificate[0]), "--private-key", str(certificate[1]))
    with coordinator(tmp_path_factory.mktemp("state") / "state", *words) as running:
        url = urlsplit(running.url)
        assert url.hostname is not None
        assert url.port is not None
        yield url.hostname, url.port


@pytest.mark.parametrize("early", [b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00" + bytes(512)])
def test_plain_text_on_a_port_of_tls_is_not_answered(address: Address, early: bytes) -> None:
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(early)
        answer = b""
        try:
            while piece := connection.recv(1000):
                answer += piece
        except ConnectionError:
            pass
    assert not answer or answer[:1] == b"\x15"  # an alert of TLS


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
def test_the_server_refuses_what_is_not_current(address: Address) -> None:
    for version, ciphers in ((ssl.TLSVersion.TLSv1_1, "ALL"), (ssl.TLSVersion.TLSv1_2, "ECDHE-ECDSA-AES128-SHA")):
        with socket.create_connection(address, timeout=20) as connection, pytest.raises((ssl.SSLError, OSError)):
            lenient_client(version, ciphers).wrap_socket(connection)
    with (
        socket.create_connection(address, timeout=20) as connection,
        lenient_client(ssl.TLSVersion.TLSv1_2).wrap_socket(connection) as agreed,
    ):
        assert agreed.version() == "TLSv1.2"
        assert agreed.compression() is None


def test_a_client_cannot_renegotiate(address: Address) -> None:
    openssl = shutil.which("openssl")
    assert openssl is not None  # it made the certificate
    command = [openssl, "s_client", "-connect", "{}:{}".format(*address), "-tls1_2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
        assert client.stdin is not None
        assert client.stdout is not None
        while b"Extended master secret" not in (line := client.stdout.readline()):
            assert line
        time.sleep(0.2)
        client.stdin.write(b"R\n")
        client.stdin.flush()
        said, _ = client.communicate(timeout=20)
    assert b"no renegotiation" in said
