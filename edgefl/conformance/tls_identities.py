"""The keys of a run with TLS: the one that is served, the next one, whose pin clients know, and another."""

import ssl
from dataclasses import dataclass
from pathlib import Path

__all__ = ["TlsIdentities", "make_tls_identities"]


@dataclass(frozen=True, slots=True)
class TlsIdentities:
    """Settings of TLS for a server, one for each key."""

    served: ssl.SSLContext
    next: ssl.SSLContext
    other: ssl.SSLContext
    """Of a key that is not pinned."""
    pins: tuple[str, ...]
    """Of the served key, and of the next."""


def make_tls_identities(folder: Path, host: str) -> TlsIdentities:
    """Make three keys with certificates of their own, in a folder. Needs the extra 'coordinator'."""
    from coordinator.http.own_certificate import own_certificate

    contexts: dict[str, ssl.SSLContext] = {}
    pins = {}
    for name in ("served", "next", "other"):
        state = folder / name
        state.mkdir(parents=True)
        own = own_certificate(state, [host])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(own.certificate, own.private_key)
        contexts[name], pins[name] = context, own.pins[0]
    return TlsIdentities(**contexts, pins=(pins["served"], pins["next"]))
