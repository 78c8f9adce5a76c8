"""Pins: the key of a certificate is found as the package `cryptography` finds it, whatever the certificate is like."""

import base64
import datetime
import json
import random
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import NameOID

from edgefl.errors import EdgeFLError
from edgefl.pins import MOST_PINS, certificates_in, check_pin, check_pins, pin_of_certificate, pin_of_key, public_key_of

GOLDEN = json.loads((Path(__file__).parent / "golden" / "pairing.json").read_bytes())
EC = ec.generate_private_key(ec.SECP256R1())
KEYS: dict[str, CertificateIssuerPrivateKeyTypes] = {
    "RSA 2048": rsa.generate_private_key(65537, 2048),
    "P-256": EC,
    "P-521": ec.generate_private_key(ec.SECP521R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate(),
    "Ed448": ed448.Ed448PrivateKey.generate(),
    "DSA": dsa.generate_private_key(1024),
}


def certificate(key: CertificateIssuerPrivateKeyTypes, names: int = 1, serial: int = 1, subject: str = "") -> bytes:
    """Return a self-signed certificate in DER encoding."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)] if subject else [])
    day = datetime.datetime(1960, 1, 1, tzinfo=datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(day)
        .not_valid_after(day + datetime.timedelta(days=40_000))
    )
    if names:
        others = [x509.DNSName(f"name-{number}.example.org") for number in range(names)]
        builder = builder.add_extension(x509.SubjectAlternativeName(others), critical=False)
    is_plain = isinstance(key, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey)
    return builder.sign(key, None if is_plain else hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def second_opinion(der: bytes) -> bytes:
    """Return the key of a certificate as `cryptography` finds it."""
    key = x509.load_der_x509_certificate(der).public_key()
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize(
    ("names", "serial", "subject"), [(0, 1, ""), (1, 2**158, "\u00e9" * 32), (3, 128, "a"), (1500, 1, "b")]
)
def test_the_key_of_every_kind_of_certificate(name: str, names: int, serial: int, subject: str) -> None:
    der = certificate(KEYS[name], names, serial, subject)
    assert public_key_of(der) == second_opinion(der)
    assert pin_of_certificate(der) == pin_of_key(second_opinion(der))


@pytest.mark.parametrize("case", GOLDEN["certificates"], ids=lambda case: case["name"])
def test_golden_certificates(case: dict[str, str]) -> None:
    der = base64.b64decode(case["der"])
    assert public_key_of(der) == base64.b64decode(case["spki"])
    assert pin_of_certificate(der) == case["pin"] == check_pin(case["pin"])


def test_a_certificate_of_version_1_has_no_version() -> None:
    """RFC 5280 has the field only from version 2 on; so it is taken out here, and the lengths around it corrected."""
    tbs = x509.load_der_x509_certificate(certificate(EC)).tbs_certificate_bytes
    content = tbs[tbs.index(b"\xa0\x03\x02\x01\x02") + 5 :]
    assert 128 <= len(content) < 250, "so that a length has two bytes"
    inner = bytes([0x30, 0x81, len(content)]) + content
    assert public_key_of(bytes([0x30, 0x81, len(inner)]) + inner) == second_opinion(certificate(EC))


def test_half_a_certificate_is_refused_wherever_it_ends() -> None:
    der = certificate(EC, names=20)
    for end in range(len(der)):
        with pytest.raises(EdgeFLError):
            public_key_of(der[:end])
    with pytest.raises(EdgeFLError):
        public_key_of(der + b"\0")


@pytest.mark.filterwarnings("ignore")  # `cryptography` warns about what it will refuse one day
def test_a_damaged_certificate_is_refused_or_read_as_others_read_it() -> None:
    der, chance = base64.b64decode(GOLDEN["certificates"][1]["der"]), random.Random(1)
    agreed = 0
    for _ in range(4000):
        damaged = bytearray(der)
        for _ in range(chance.choice((1, 1, 2))):
            damaged[chance.randrange(len(der))] = chance.randrange(256)
        try:
            found = public_key_of(bytes(damaged))
        except EdgeFLError:
            found = None
        try:
            expected = second_opinion(bytes(damaged))
        except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion):
            continue
        agreed += 1
        # A key that was changed may be written in another form by `cryptography`, never found elsewhere.
        assert found is None or found == expected or found in bytes(damaged)
        if bytes(damaged).count(expected) == 1:
            assert found == expected
    assert agreed > 500


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x30",
        b"\x30\x80\0\0",  # an indefinite length, which DER forbids
        b"\x30\x81\x05\x30\x03\x02\x01\x01",  # a length that is not in its shortest form
        b"\x30\x84\x00\x00\x00\x02\x30\x00",
        b"\x30\x84\xff\xff\xff\xff\x30\x00",
        b"\x30\x02\x30\x05",  # longer than what is around it
        b"\x30\x02\x31\x00",
        b"\x30\x82\x00\x00" + b"\0" * 70_000,
    ],
)
def test_what_is_not_a_certificate_is_refused(data: bytes) -> None:
    with pytest.raises(EdgeFLError, match="cannot be read"):
        public_key_of(data)


def test_the_first_certificate_of_a_chain_is_the_servers() -> None:
    first, second = certificate(EC), certificate(KEYS["RSA 2048"])
    pem = "".join(f"# a comment\n{base64_pem(der)}" for der in (first, second))
    assert certificates_in(pem) == [first, second]
    for text in ("", "-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----", "a key"):
        with pytest.raises(EdgeFLError, match="no certificate"):
            certificates_in(text)


def base64_pem(der: bytes) -> str:
    return x509.load_der_x509_certificate(der).public_bytes(serialization.Encoding.PEM).decode()


def test_there_are_few_pins_and_each_is_there_once() -> None:
    pins = [pin_of_key(bytes([number])) for number in range(MOST_PINS + 1)]
    assert check_pins(pins[1:]) == tuple(pins[1:])
    with pytest.raises(EdgeFLError, match="9 pins"):
        check_pins(pins)
    with pytest.raises(EdgeFLError, match="twice"):
        check_pins([pins[0], pins[0]])
    for wrong in ("", "sha256:", pins[0] + "=", pins[0].upper(), pins[0][7:], pins[0] + "\n"):
        with pytest.raises(EdgeFLError, match="not a pin"):
            check_pin(wrong)
