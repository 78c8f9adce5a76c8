"""Certificates for tests, and a server with one of them that records what it is sent."""

import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from edgefl.pins import pin_of_key


def new_key() -> ec.EllipticCurvePrivateKey:
    """Return a new key."""
    return ec.generate_private_key(ec.SECP256R1())


def pin_of(key: ec.EllipticCurvePrivateKey) -> str:
    """Return the pin of a key, by way of `cryptography`."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return pin_of_key(key.public_key().public_bytes(serialization.Encoding.DER, form))


def write_certificate(
    folder: Path, key: ec.EllipticCurvePrivateKey, *, name: str = "127.0.0.1", days: tuple[int, int] = (-1, 1)
) -> Path:
    """Write a key and a self-signed certificate for an address or a name into one file, valid in these days."""
    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    try:
        other: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        other = x509.DNSName(name)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + datetime.timedelta(days=days[0]))
        .not_valid_after(now + datetime.timedelta(days=days[1]))
        .add_extension(x509.SubjectAlternativeName([other]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / f"{pin_of(key)[7:15]}-{x509.random_serial_number()}.pem"
    path.write_bytes(pem + certificate.public_bytes(serialization.Encoding.PEM))
    return path


@dataclass
class Recorder:
    """A server that answers every connection with the same bytes."""

    port: int
    received: list[bytes] = field(default_factory=list)
    """What came on each connection, decrypted."""

    @property
    def url(self) -> str:
        """Its address."""
        return f"https://127.0.0.1:{self.port}"


@contextlib.contextmanager
def recording(certificate: Path, answer: bytes, *, newest: ssl.TLSVersion | None = None) -> Iterator[Recorder]:
    """Serve with a certificate on 127.0.0.1, one connection after the other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    if newest is not None:
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, newest
        context.set_ciphers("ALL:@SECLEVEL=0")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        recorder = Recorder(listener.getsockname()[1])

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    _serve_one(listener.accept()[0], context, recorder, answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield recorder
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def _serve_one(connection: socket.socket, context: ssl.SSLContext, recorder: Recorder, answer: bytes) -> None:
    place = len(recorder.received)
    recorder.received.append(b"")
    with connection, contextlib.suppress(OSError):
        connection.settimeout(10)
        with context.wrap_socket(connection, server_side=True) as encrypted:
            recorder.received[place] = encrypted.recv(65536)
            if recorder.received[place]:
                encrypted.sendall(answer)
