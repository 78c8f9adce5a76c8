"""What pairing.json must hold: written by hand when the format of pairing URIs changes, never by a test.

The texts are written by hand and the pins by the package `cryptography`, not by `edgefl.pairing` and `edgefl.pins`, so
that the file checks those and not itself. Everything is fixed, keys included: the same file comes out every time.
"""

import base64
import datetime
import hashlib
import json
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import NameOID

KEY = "edgefl-key-Zm9yIGV4YW1wbGUgb25seSwgbm90IGEgcmVhbCBrZXkh"
ONE = "sha256:47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
TWO = "sha256:n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg"
Accepted = tuple[str, str, str | None, str | None, list[str]]

ACCEPTED: dict[str, Accepted] = {
    "everything, for an app": (
        f"edgefl://join?url=https%3A%2F%2F10.0.0.5%3A8443&key={KEY}&federation=digits&pin={ONE}&pin={TWO}",
        *("https://10.0.0.5:8443", KEY, "digits", [ONE, TWO]),
    ),
    "everything, for a browser": (
        f"https://10.0.0.5:8443/join#key={KEY}&federation=digits&pin={ONE}&pin={TWO}",
        *("https://10.0.0.5:8443", KEY, "digits", [ONE, TWO]),
    ),
    "no pins: the usual verification": (
        f"https://fl.example.org/join#key={KEY}&federation=digits",
        *("https://fl.example.org", KEY, "digits", []),
    ),
    "no key: it is given by other means": (
        f"https://pi.local:8443/join#pin={ONE}",
        *("https://pi.local:8443", None, None, [ONE]),
    ),
    "a path before /join": (
        f"https://example.org/fl/one/join#key={KEY}",
        *("https://example.org/fl/one", KEY, None, []),
    ),
    "an address of IPv6": (
        f"edgefl://join?url=https%3A%2F%2F%5Bfd00%3A%3A5%5D%3A8443&key={KEY}&pin={ONE}",
        *("https://[fd00::5]:8443", KEY, None, [ONE]),
    ),
    "fields in another order, a field of a later version, and more escaped than needed": (
        f"edgefl://join?pin={TWO.replace(':', '%3A')}&later=a%20b%C3%A9&federation=%64igits&pin={ONE}&key={KEY}"
        "&url=https://10.0.0.5:8443/",
        *("https://10.0.0.5:8443", KEY, "digits", [TWO, ONE]),
    ),
    "plain HTTP on this machine": (
        f"http://127.0.0.1:8000/join#key={KEY}&federation=digits",
        *("http://127.0.0.1:8000", KEY, "digits", []),
    ),
}
INSECURE = {"plain HTTP to another machine": f"http://10.0.0.5:8000/join#key={KEY}&federation=digits"}
REFUSED = {
    "empty": "",
    "a plain URL": "https://10.0.0.5:8443",
    "no fragment": "https://10.0.0.5:8443/join",
    "another page": f"https://10.0.0.5:8443/other#key={KEY}",
    "a query instead of the fragment": f"https://10.0.0.5:8443/join?key={KEY}",
    "a query and a fragment": f"https://10.0.0.5:8443/join?a=b#key={KEY}",
    "another scheme": f"javascript://10.0.0.5/join#key={KEY}",
    "another host of the app's scheme": f"edgefl://leave?url=https%3A%2F%2F10.0.0.5&key={KEY}",
    "the app's scheme without a URL": f"edgefl://join?key={KEY}",
    "a URL with another scheme": f"edgefl://join?url=ftp%3A%2F%2F10.0.0.5&key={KEY}",
    "a URL with a user": f"edgefl://join?url=https%3A%2F%2Fa%40b%2F&key={KEY}",
    "a user in the address": f"https://10.0.0.5:8443@evil.example/join#key={KEY}",
    "a URL with a query": f"edgefl://join?url=https%3A%2F%2Fa%3Fb&key={KEY}",
    "a URL with a fragment": f"edgefl://join?url=https%3A%2F%2Fa%23b&key={KEY}",
    "a backslash": f"https://10.0.0.5\\@evil.example/join#key={KEY}",
    "a path that goes up": f"https://10.0.0.5/../join#key={KEY}",
    "a port that is too large": f"https://10.0.0.5:65536/join#key={KEY}",
    "port 0": f"https://10.0.0.5:0/join#key={KEY}",
    "no host": f"https:///join#key={KEY}",
    "an invalid address of IPv6": f"https://[fd00::5::6]/join#key={KEY}",
    "two URLs": f"edgefl://join?url=https%3A%2F%2Fa&url=https%3A%2F%2Fb&key={KEY}",
    "a URL inside the browser's form": f"https://a/join#url=https%3A%2F%2Fb&key={KEY}",
    "two keys": f"https://a/join#key={KEY}&key={KEY}",
    "two federations": "https://a/join#federation=a&federation=b",
    "the same pin twice": f"https://a/join#pin={ONE}&pin={ONE}",
    "nine pins": "https://a/join#" + "&".join(f"pin=sha256:{'A' * 42}{last}" for last in "AEIMQUYcg"),
    "pins without encryption": f"http://127.0.0.1:8000/join#pin={ONE}",
    "a pin with padding": f"https://a/join#pin={ONE}%3D",
    "a pin in hexadecimal digits": f"https://a/join#pin=sha256:{'0' * 64}",
    "a pin whose last bits are not zero": f"https://a/join#pin={ONE[:-1]}V",
    "a pin in the other alphabet": f"https://a/join#pin={ONE.replace('-', '%2B')}",
    "a pin with another hash": f"https://a/join#pin={ONE.replace('sha256', 'sha1')}",
    "a token of another kind as the key": "https://a/join#key=edgefl-admin-Zm9yIGV4YW1wbGUgb25seSwgbm90IGEgcmVhbCBrZXkh",
    "an empty field": "https://a/join#key=",
    "a field without a value": "https://a/join#key",
    "a name in upper case": f"https://a/join#Key={KEY}",
    "nothing between two ampersands": f"https://a/join#key={KEY}&&federation=digits",
    "an ampersand at the end": f"https://a/join#key={KEY}&",
    "a plus for a space": "https://a/join#federation=my+digits",
    "half an escape": f"https://a/join#key={KEY}&federation=a%2",
    "escaped bytes that are not UTF-8": f"https://a/join#key={KEY}&later=%FF",
    "an escaped line break": f"https://a/join#key={KEY}&federation=a%0Ab",
    "an escaped NUL": f"https://a/join#key={KEY}%00",
    "a line break": f"https://a/join#key={KEY}\n",
    "a space": f" https://a/join#key={KEY}",
    "a letter beyond ASCII": f"https://a/join#key={KEY}&federation=zahl\u00e9n",
    "a second fragment": f"https://a/join#key={KEY}#federation=digits",
    "33 fields": "https://a/join#" + "&".join(f"later{n}=1" for n in range(33)),
    "too long": "https://a/join#later=" + "a" * 2048,
}


def certificates() -> dict[str, dict[str, str]]:
    """Return a certificate for each kind of key, all signed by one fixed key of Ed25519."""
    issuer = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    modulus = int.from_bytes(hashlib.shake_256(b"edgefl").digest(256), "big") | 1 | 1 << 2047
    keys: dict[str, CertificatePublicKeyTypes] = {
        "RSA": rsa.RSAPublicNumbers(65537, modulus).public_key(),
        "P-256": ec.derive_private_key(1234567, ec.SECP256R1()).public_key(),
        "P-384": ec.derive_private_key(1234567, ec.SECP384R1()).public_key(),
        "Ed25519": issuer.public_key(),
    }
    day = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
    found = {}
    for number, (name, key) in enumerate(keys.items()):
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name} \u00e9" * (1 + number))])
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "golden files")]))
            .public_key(key)
            .serial_number(1 << 8 * number)
            .not_valid_before(day)
            .not_valid_after(day + datetime.timedelta(days=1))
            .sign(issuer, None)
        )
        spki = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        digest = base64.urlsafe_b64encode(hashlib.sha256(spki).digest()).decode().rstrip("=")
        der = base64.b64encode(made.public_bytes(serialization.Encoding.DER)).decode()
        found[name] = {"der": der, "spki": base64.b64encode(spki).decode(), "pin": f"sha256:{digest}"}
    return found


def forms(url: str, key: str | None, federation: str | None, pins: list[str]) -> dict[str, str]:
    """Return both forms as they are written: fields in this order, escaped as little as allowed."""
    fields = [f"{name}={value}" for name, value in (("key", key), ("federation", federation)) if value]
    fields += [f"pin={pin}" for pin in pins]
    escaped = "".join(sign if sign.isalnum() or sign in "-._~" else f"%{ord(sign):02X}" for sign in url)
    return {"app": "edgefl://join?" + "&".join([f"url={escaped}", *fields]), "page": f"{url}/join#" + "&".join(fields)}


def text() -> str:
    """Return the content of the file."""
    accepted = [
        {"name": name, "uri": uri, "url": url, "key": key, "federation": federation, "pins": pins}
        | {"written": forms(url, key, federation, pins)}
        for name, (uri, url, key, federation, pins) in ACCEPTED.items()
    ]
    content = {
        "accepted": accepted,
        "accepted_if_insecure": [{"name": name, "uri": uri} for name, uri in INSECURE.items()],
        "refused": [{"name": name, "uri": uri} for name, uri in REFUSED.items()],
        "certificates": [{"name": name} | values for name, values in certificates().items()],
    }
    return json.dumps(content, indent=1) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("pairing.json").write_text(text(), encoding="ascii")
