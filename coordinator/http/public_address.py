"""Where other machines reach this coordinator: the names of this machine, and the address in pairing codes."""

import contextlib
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from edgefl.coordinator_url import checked_url, is_loopback, is_this_machine
from edgefl.errors import EdgeFLError
from edgefl.pairing import Pairing

__all__ = ["PublicAddress", "check_names", "is_wildcard", "machine_names", "public_url"]

_ELSEWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
"""Addresses that are reserved for documents: the system says from which of its own it would reach them."""


@dataclass(frozen=True, slots=True)
class PublicAddress:
    """The address in pairing codes, and the pins of the certificate there."""

    url: str
    pins: tuple[str, ...] = ()

    def pairing(self, key: str | None, federation: str | None, address: str | None = None) -> Pairing:
        """Return what a device needs to join.

        `address` is where the operator reaches this coordinator, which is better than any guess; but if that is on this
        machine only, devices are told the public one.
        """
        url = self.url if address is None or is_this_machine(address) else checked_url(address, insecure=True)
        return Pairing(url, key, federation, self.pins if url.startswith("https:") else ())


def is_wildcard(host: str) -> bool:
    """Return whether a host means all addresses of this machine."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_unspecified
    return False


def public_url(names: Sequence[str], host: str, port: int, *, tls: bool) -> str:
    """Return the address for devices: the first of the given names or URLs, or the host, or this machine's address."""
    first = names[0] if names else ""
    if "://" in first:
        return Pairing(first).url
    name = first or (host if not is_wildcard(host) else next(iter([*_addresses(), socket.gethostname()])))
    try:
        return Pairing(f"{'https' if tls else 'http'}://{_bracketed(name)}:{port}").url
    except EdgeFLError:
        raise EdgeFLError(
            f"{name!r} cannot be the address in pairing codes", fix="Give another one with --public-name."
        ) from None


def machine_names(names: Sequence[str], host: str) -> list[str]:
    """Return the names and addresses that a certificate of this machine is for."""
    own = socket.gethostname()
    given = [(urlsplit(name).hostname or "") if "://" in name else name for name in names]
    others = [own, f"{own}.local"] if own and "." not in own and not is_loopback(host) else [own]
    hosts = [] if is_wildcard(host) else [host]
    addresses = [] if is_loopback(host) else _addresses()
    return [name for name in (*given, *hosts, *others, "localhost", "127.0.0.1", "::1", *addresses) if name]


def check_names(names: Sequence[str]) -> None:
    """Refuse what cannot be in a pairing code."""
    for name in names:
        try:
            Pairing(name if "://" in name else f"https://{_bracketed(name)}:1")
        except EdgeFLError:
            raise EdgeFLError(
                f"{name!r} is not the name or address of a machine",
                fix="Write for example pi.local, 10.0.0.5 or https://fl.example.org.",
            ) from None


def _addresses() -> list[str]:
    """Return the addresses from which this machine reaches others. Nothing is sent to find them."""
    found = []
    for family, elsewhere in _ELSEWHERE:
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((elsewhere, 9))
            found.append(str(probe.getsockname()[0]))
    return found


def _bracketed(name: str) -> str:
    return f"[{name}]" if ":" in name else name
