"""Which coordinator `edgefl join` means, and whom to trust there: from the command line, a pairing URI or the home.

A pairing URI that holds a key should not be on a command line, which other users of the machine can read; so it is also
taken from the environment, or typed in. The home keeps the URL, the federation, the pins and a digest of the URI, and
never the key.
"""

import argparse
import getpass
import os
import sys
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from edgefl.errors import EdgeFLError
from edgefl.pairing import LONGEST_URI, Pairing
from edgefl.pins import check_pins

if TYPE_CHECKING:
    from device_runtime.agent.agent_home import AgentHome, Identity

__all__ = ["add_pairing", "join_key", "named", "paired", "typed_in"]

_VARIABLE = "EDGEFL_JOIN_URI"
_NO_PINS = "none"


def add_pairing(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which coordinator to join, and whom to trust."""
    parser.add_argument(
        "url",
        nargs="?",
        metavar="URL|URI",
        help="URL of the coordinator, or its pairing URI; - reads it from standard input (default: $EDGEFL_JOIN_URI, "
        "or the coordinator that this device has joined)",
    )
    parser.add_argument(
        "--key", metavar="KEY", help="join key (default: in the pairing URI, $EDGEFL_JOIN_KEY, or ask for it)"
    )
    parser.add_argument(
        "--pin",
        action="append",
        default=[],
        metavar="PIN",
        help="trust the coordinator with this public key, sha256:..., whatever its certificate says; repeatable. "
        "'none' forgets the pins of this device (default: those in the pairing URI, or those that it has)",
    )
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="allow http:// to another machine: everybody on the way can read and change what is sent",
    )
    parser.add_argument(
        "--certificate", metavar="FILE", help="certificate that signed the coordinator's, in PEM format"
    )


def named(args: argparse.Namespace) -> Pairing | None:
    """Return the coordinator that the command line or the environment names, or None."""
    text = _typed_in() if args.url == "-" else args.url or os.environ.get(_VARIABLE)
    return Pairing.at(text, insecure=args.insecure) if text else None


def typed_in(args: argparse.Namespace) -> Pairing:
    """Return the coordinator that is typed in."""
    return Pairing.at(_typed_in(), insecure=args.insecure)


def paired(args: argparse.Namespace, pairing: Pairing | None, home: "AgentHome") -> Pairing:
    """Return the named coordinator, or the one that the device has joined, with the pins that count; remember both."""
    from edgefl.values import digest_of

    identity = home.identity()
    if pairing is None:
        text = _typed_in() if identity is None else identity.coordinator
        pairing = Pairing.at(text, insecure=args.insecure)
    if identity is not None and identity.coordinator != pairing.url:
        if identity.token is not None:
            raise EdgeFLError(
                f"{home.folder} belongs to the coordinator {identity.coordinator}",
                fix="Give another --home for this one.",
            )
        identity = None  # it has never joined there
    code = None if args.pin or not pairing.pins else digest_of(pairing.page_uri().encode())
    pairing = replace(pairing, pins=_pins(args, pairing, identity, code))
    if pairing.pins and args.certificate is not None:
        raise EdgeFLError(
            "there are pins and a certificate, but only one of them can decide whom to trust",
            fix="Leave out --certificate, or forget the pins with: --pin none",
        )
    federation = pairing.federation or (identity.federation if identity is not None else None)
    _remember(home, identity, replace(pairing, federation=federation), code)
    return pairing


def join_key(args: argparse.Namespace, pairing: Pairing, home: "AgentHome") -> str | None:
    """Return the join key: the given one, the one in the environment, or, for a new device, one that is typed in."""
    given = args.key or pairing.key or os.environ.get("EDGEFL_JOIN_KEY") or None
    identity = home.identity()
    if given is not None or (identity is not None and identity.token is not None) or not sys.stdin.isatty():
        return given
    return getpass.getpass("join key: ").strip() or None


def _typed_in() -> str:
    """Read the URL or URI from standard input, without showing what is typed."""
    is_terminal = sys.stdin.isatty()
    text = getpass.getpass("pairing URI: ") if is_terminal else sys.stdin.readline(2 * LONGEST_URI)
    if not text.strip():
        raise EdgeFLError(
            "there is no coordinator to join",
            fix=f"Give its URL, or its pairing URI in the environment variable {_VARIABLE}.",
        )
    return text.strip()


def _pins(args: argparse.Namespace, pairing: Pairing, identity: "Identity | None", code: str | None) -> tuple[str, ...]:
    """Return the pins: the given ones, those of a new URI, or those that the device has.

    A service gives the same URI at every start. The coordinator may have changed keys since, and told the device.
    """
    if args.pin == [_NO_PINS]:
        return ()
    if args.pin:
        return check_pins(args.pin)
    known = identity.pins if identity is not None else ()
    is_new = identity is None or code != identity.code
    return pairing.pins if is_new and pairing.pins else known or pairing.pins


def _remember(home: "AgentHome", identity: "Identity | None", pairing: Pairing, code: str | None) -> None:
    from device_runtime.agent.agent_home import Identity

    known = identity or Identity(pairing.url, uuid.uuid4().hex)
    changed = replace(known, federation=pairing.federation, pins=pairing.pins, code=code or known.code)
    if changed != identity:
        home.save_identity(changed)
