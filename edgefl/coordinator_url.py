"""The URL of a coordinator: who may be sent a secret, and which certificate proves who that is.

`edgefl fed` and `edgefl join` check the URL here before they send a token or a join key. Plain HTTP is for this machine
alone; to any other host it needs the option --insecure, because everybody on the way can read what is sent.
"""

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from edgefl.errors import EdgeFLError

if TYPE_CHECKING:
    import ssl

__all__ = ["checked_url", "is_loopback", "is_this_machine", "trusting"]

_EXAMPLE = "Write for example https://10.0.0.5:8443."


def checked_url(url: str, *, insecure: bool = False) -> str:
    """Return a coordinator's URL without a slash at its end. Refuse plain HTTP to another host unless `insecure`."""
    scheme, host = _parts(url)
    if scheme == "http" and not is_loopback(host) and not insecure:
        raise EdgeFLError(
            f"{url} is not encrypted: everybody between here and {host} could read the secrets that are sent",
            fix="Use an https:// URL, or allow it with --insecure if you trust the whole network.",
        )
    return url.rstrip("/")


def is_this_machine(url: str) -> bool:
    """Return whether a coordinator's URL names this machine, to which nothing should be sent through a proxy."""
    return is_loopback(_parts(url)[1])


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def trusting(certificate: str) -> "ssl.SSLContext":
    """Return the settings of TLS that trust the certificate in this file, and no other authority."""
    import ssl

    try:
        return ssl.create_default_context(cafile=certificate)
    except OSError as error:
        raise EdgeFLError(
            f"the certificate {certificate} cannot be used: {error}", fix="Give a certificate in PEM format."
        ) from None


def _parts(url: str) -> tuple[str, str]:
    """Return the scheme and host of a URL, in lower case.

    Readers of URLs disagree about a user name, backslashes and control characters, and so about the host: none of them
    is allowed.
    """
    try:
        parts = urlsplit(url)
        scheme, host, _ = parts.scheme, parts.hostname, parts.port  # an invalid port raises
    except ValueError:
        scheme, host = "", None
    if scheme not in ("http", "https") or not host:
        raise EdgeFLError(f"{url!r} is not a coordinator URL", fix=_EXAMPLE)
    if not (url.isascii() and url.isprintable()) or any(sign in url for sign in " \\@?#"):
        raise EdgeFLError(
            f"{url!r} is not a coordinator URL: it may have a host, a port and a path, and nothing else", fix=_EXAMPLE
        )
    return scheme, host
