"""The certificate that a coordinator makes for itself, so that TLS needs no authority and no other tool.

It is signed by its own key (P-256), which devices pin; so its names and dates are for browsers and other programs only.
It is made again, with the same key, when half of its life is over or when this machine's names have changed.
"""

import contextlib
import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coordinator.storage.tls_keys import TlsKey, locked_keys
from edgefl.artifacts.artifact_store import PRIVATE, write_atomically
from edgefl.pins import PINS_FILE

if TYPE_CHECKING:
    from cryptography import x509

__all__ = ["OwnCertificate", "own_certificate"]

_LIFE = datetime.timedelta(days=800)
"""Browsers of some makers refuse more than 825 days."""
_CLOCK_ERROR = datetime.timedelta(days=1)
_LONGEST_NAME = 253
_OTHER_USES = (
    *("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)
"""What the key is not for: it signs handshakes."""


@dataclass(frozen=True, slots=True)
class OwnCertificate:
    """A certificate and its key, in files, and the pins of the current and of the next key."""

    certificate: Path
    private_key: Path
    pins: tuple[str, ...]


def own_certificate(state: Path, names: Sequence[str]) -> OwnCertificate:
    """Return the certificate of a state folder, for these host names and addresses; make what is missing."""
    with locked_keys(state) as keys:
        key, pins = keys.current(), (keys.current().pin, keys.next().pin)
        if not _is_good(key, names):
            write_atomically(key.certificate, _made(key, names), mode=PRIVATE)
        keys.note_served(key)
        write_atomically(state.resolve() / PINS_FILE, ("\n".join(pins) + "\n").encode(), mode=PRIVATE)
    return OwnCertificate(key.certificate, key.path, pins)


def _is_good(key: TlsKey, names: Sequence[str]) -> bool:
    """Return whether there is a certificate of this key, for these names, with half of its life left."""
    from cryptography import x509

    with contextlib.suppress(OSError, ValueError, x509.ExtensionNotFound):
        if key.certificate.is_symlink():
            return False
        known = x509.load_pem_x509_certificate(key.certificate.read_bytes())
        others = known.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        left = known.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
        is_ours = known.public_key() == key.private.public_key()
        return is_ours and left > _LIFE / 2 and set(others) == set(_general_names(names))
    return False


def _made(key: TlsKey, names: Sequence[str]) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    now = datetime.datetime.now(datetime.UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "EdgeFL coordinator")])
    usage = dict.fromkeys(_OTHER_USES, False)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_ERROR)
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectAlternativeName(_general_names(names)), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=True, **usage), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.private.public_key()), critical=False)
        .sign(key.private, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


def _general_names(names: Sequence[str]) -> "list[x509.GeneralName]":
    """Return names and addresses as a certificate has them, each once. What cannot be in one is left out."""
    from cryptography import x509

    found: list[x509.GeneralName] = []
    for name in dict.fromkeys(names):
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            if name.isascii() and name.isprintable() and 0 < len(name) <= _LONGEST_NAME and " " not in name:
                found.append(x509.DNSName(name))
    return found
