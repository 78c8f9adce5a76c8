"""Pins: the public keys that a coordinator's certificate may have, as SHA-256 over the SubjectPublicKeyInfo.

A pin names a key, so it stays the same when a certificate is renewed, whatever names and dates that has. Devices check
pins with the standard library alone, so the key is found here by a walk over the certificate's DER encoding: enough of
X.509 to find one field, and strict about every length on the way. The TLS handshake, not this module, proves that the
other side has the private key.
"""

import base64
import hashlib
import re
from collections.abc import Iterable

from edgefl.errors import EdgeFLError

__all__ = [
    "MOST_PINS",
    "PINS_FILE",
    "certificates_in",
    "check_pin",
    "check_pins",
    "pin_of_certificate",
    "pin_of_key",
    "public_key_of",
]

MOST_PINS = 8
"""Of one coordinator: the current key's, the next one's, and those of a change to another certificate."""

PINS_FILE = "pins"
"""In the state folder of a coordinator that made its own certificate, for the operator's client on that machine."""

_PREFIX = "sha256:"
_PIN = re.compile(r"sha256:[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]")
"""256 bits in base64url without padding: the last character carries four bits, so its last two are zero."""
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----\s*([A-Za-z0-9+/=\s]+?)\s*-----END CERTIFICATE-----")
_LARGEST_CERTIFICATE = 65_536
_INTEGER, _SEQUENCE, _VERSION = 0x02, 0x30, 0xA0


def check_pin(text: str) -> str:
    """Return a pin if it is one."""
    if _PIN.fullmatch(text) is None:
        raise EdgeFLError(
            f"{text[:80]!r} is not a pin", fix="A pin is 'sha256:' and 43 letters, digits, '-' or '_': copy it again."
        )
    return text


def check_pins(pins: Iterable[str]) -> tuple[str, ...]:
    """Return pins if there are not too many, all are valid, and no two are equal."""
    found = tuple(pins)
    if len(found) > MOST_PINS:
        raise EdgeFLError(f"there are {len(found)} pins", fix=f"Give {MOST_PINS} at the most.")
    for pin in found:
        check_pin(pin)
    if len(set(found)) != len(found):
        raise EdgeFLError("a pin is given twice", fix="Give each pin once.")
    return found


def pin_of_key(public_key: bytes) -> str:
    """Return the pin of a DER SubjectPublicKeyInfo."""
    return _PREFIX + base64.urlsafe_b64encode(hashlib.sha256(public_key).digest()).decode("ascii").rstrip("=")


def pin_of_certificate(certificate: bytes) -> str:
    """Return the pin of a certificate's key, from its DER encoding."""
    return pin_of_key(public_key_of(certificate))


def certificates_in(text: str) -> list[bytes]:
    """Return the certificates in a PEM file, in DER encoding. The first is the server's own."""
    try:
        found = [base64.b64decode("".join(body.split()), validate=True) for body in _PEM.findall(text)]
    except ValueError:
        found = []
    if not found:
        raise EdgeFLError("the file contains no certificate in PEM format", fix="Give the file of a certificate.")
    return found


def public_key_of(certificate: bytes) -> bytes:
    """Return the DER SubjectPublicKeyInfo of a DER certificate (RFC 5280, section 4.1).

    Certificate   ::= SEQUENCE { tbsCertificate, signatureAlgorithm, signatureValue }
    TBSCertificate ::= SEQUENCE { [0] version OPTIONAL, serialNumber, signature, issuer, validity, subject,
                                  subjectPublicKeyInfo, ... }
    """
    if len(certificate) > _LARGEST_CERTIFICATE:
        raise _damaged(f"it has {len(certificate):,} bytes")
    start, end = _element(certificate, 0, len(certificate), _SEQUENCE)
    if end != len(certificate):
        raise _damaged("there are bytes behind it")
    place, end = _element(certificate, start, end, _SEQUENCE)
    if place < end and certificate[place] == _VERSION:
        _, place = _element(certificate, place, end, _VERSION)
    for tag in (_INTEGER, _SEQUENCE, _SEQUENCE, _SEQUENCE, _SEQUENCE):  # serial number ... subject
        _, place = _element(certificate, place, end, tag)
    _, behind = _element(certificate, place, end, _SEQUENCE)
    return certificate[place:behind]


def _element(data: bytes, place: int, end: int, tag: int) -> tuple[int, int]:
    """Return where the content of the element at a place begins and where it ends, within the element around it."""
    if end - place < 2 or data[place] != tag:
        raise _damaged(f"there is no element {tag:#04x} at byte {place}")
    size, start = data[place + 1], place + 2
    if size >= 0x80:
        count = size - 0x80
        if not 1 <= count <= 3 or end - start < count:
            raise _damaged(f"the length at byte {place + 1} is not valid")
        size = int.from_bytes(data[start : start + count], "big")
        start += count
        if size < 0x80 or size < 1 << 8 * (count - 1):  # DER: in the fewest bytes
            raise _damaged(f"the length at byte {place + 1} is not in its shortest form")
    if size > end - start:
        raise _damaged(f"the element at byte {place} is longer than what contains it")
    return start, start + size


def _damaged(why: str) -> EdgeFLError:
    return EdgeFLError(f"the certificate cannot be read: {why}", fix="Look at the certificate with `openssl x509`.")
