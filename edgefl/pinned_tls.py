"""TLS to a coordinator whose public key is known: the pin is checked right after the handshake, before any request.

With pins, the key is all that counts: not the names and dates in the certificate, nor who signed it. The handshake
proves that the other side has the private key. httpx, httpcore and `ssl` itself take a `PinnedContext` as they take any
other, so no code that opens a connection can forget the check.
"""

import contextlib
import ssl
from collections.abc import Iterable
from typing import Any

from edgefl.errors import EdgeFLError
from edgefl.pins import check_pins, pin_of_certificate

__all__ = ["PinnedContext", "WrongPinError"]

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2: forward secrecy and authenticated encryption, as all suites of TLS 1.3 have."""


class WrongPinError(EdgeFLError):
    """The other side has a key that is not pinned: somebody is in between, or the coordinator has another key."""


class PinnedContext(ssl.SSLContext):
    """A client's settings of TLS that trust some public keys, and nothing else."""

    pins: frozenset[str]
    """The keys that are trusted. May be replaced; open connections stay."""
    used: str | None
    """The pin of the latest connection."""

    def __new__(cls, pins: Iterable[str]) -> "PinnedContext":
        """Return settings that trust these keys."""
        context = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        context.pins, context.used = frozenset(check_pins(pins)), None
        if not context.pins:
            raise EdgeFLError("there are no pins", fix="Give a pin, or use the usual verification.")
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # of names, dates and signatures of the certificate; the key is checked
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(_CIPHERS)
        context.sslsocket_class, context.sslobject_class = _PinnedSocket, _PinnedObject
        return context

    def __init__(self, pins: Iterable[str]) -> None:
        pass

    def check(self, certificate: bytes | None) -> None:
        """Check the certificate of the other side, in DER encoding."""
        if not certificate:
            raise _wrong("no certificate")
        try:
            pin = pin_of_certificate(certificate)
        except EdgeFLError as error:
            raise _wrong(f"a certificate that cannot be read ({error.problem})") from None
        if pin not in self.pins:
            raise _wrong(f"the key {pin}")
        self.used = pin


class _PinnedSocket(ssl.SSLSocket):
    """A connection over a socket."""

    def do_handshake(self, block: bool = False) -> None:
        """Do the handshake, and check the key. Nothing but handshakes was sent until then."""
        super().do_handshake(block)
        try:
            _check(self.context, self.getpeercert(binary_form=True))
        except BaseException:
            with contextlib.suppress(OSError):
                self.close()
            raise


class _PinnedObject(ssl.SSLObject):
    """A connection inside another one, as through a proxy that is itself reached over TLS."""

    def do_handshake(self) -> None:
        """Do the handshake, and check the key."""
        super().do_handshake()
        _check(self.context, self.getpeercert(binary_form=True))


def _check(context: Any, certificate: bytes | None) -> None:
    if not isinstance(context, PinnedContext):
        raise _wrong("a connection without pins")
    context.check(certificate)


def _wrong(shown: str) -> WrongPinError:
    return WrongPinError(
        f"this is not the coordinator that was paired: it shows {shown}, which is not among the pins",
        fix="Nothing was sent to it. Somebody may be between this device and the coordinator: try another network. If "
        "the operator says that the coordinator has a new key, join again with a new pairing code.",
    )
