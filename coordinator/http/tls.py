"""TLS: what the coordinator accepts, and how long it waits for a handshake."""

import asyncio
import contextlib
import functools
import ssl
from collections.abc import Iterator

__all__ = ["restricted", "short_handshakes"]

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Of TLS 1.2: forward secrecy and authenticated encryption, as all suites of TLS 1.3 have."""


def restricted(context: ssl.SSLContext) -> ssl.SSLContext:
    """Return a server's context that accepts TLS 1.2 and 1.3 alone, whatever the system's defaults are."""
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
    return context


@contextlib.contextmanager
def short_handshakes(seconds: float) -> Iterator[None]:
    """Let servers that are created in this context give up a handshake after this time: uvicorn does not say how long,
    and until a handshake has ended a connection counts for nobody."""
    loop = asyncio.get_running_loop()
    setattr(loop, "create_server", functools.partial(loop.create_server, ssl_handshake_timeout=seconds))  # noqa: B010
    try:
        yield
    finally:
        delattr(loop, "create_server")
