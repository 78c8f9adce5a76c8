"""`edgefl certificate`: the pins of a coordinator's own certificate, and the rotation of its key."""

import argparse
from pathlib import Path

from edgefl.cli.optional_dependencies import requires_extra
from edgefl.errors import EdgeFLError

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl certificate
  edgefl certificate --rotate --state /var/lib/edgefl-coordinator

A coordinator that makes its own certificate has two keys: the one that it uses, and the next one. Devices know the pins
of both. --rotate makes the next key the current one and makes another next key; it takes effect when the coordinator is
restarted. Devices that know both pins go on, and learn the new one when they connect. A device that does not connect
between two rotations has to be paired again, so leave some days between them.
"""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = verbs.add_parser(
        "certificate",
        help="pins and rotation of a coordinator's own certificate",
        description="Print the pins of the certificate that a coordinator made, or rotate its key.\n"
        "Needs the extra 'coordinator'.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--state",
        metavar="DIR",
        default="~/.edgefl/coordinator",
        help="state folder of the coordinator (default: ~/.edgefl/coordinator)",
    )
    parser.add_argument("--rotate", action="store_true", help="make the next key the current one, from the next start")
    parser.add_argument(
        "--again", action="store_true", help="rotate although the current key has not been used since the last rotation"
    )
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the pins, after rotating if that is wanted."""
    with requires_extra("coordinator", action="Reading a coordinator's certificate"):
        from coordinator.storage.tls_keys import FOLDER, locked_keys
    from edgefl.cli.tables import print_json

    state = Path(args.state).expanduser()
    if not (state / FOLDER).is_dir():
        raise EdgeFLError(
            f"there is no certificate in {state}",
            fix="A coordinator makes one when it is started with --host 0.0.0.0 or --tls.",
        )
    with locked_keys(state) as keys:
        if args.rotate:
            if not args.again and not keys.has_served(keys.current()):
                raise EdgeFLError(
                    "the key of the last rotation has not been used yet: a second rotation would lock all devices out",
                    fix="Restart the coordinator, and wait until its devices have connected. If the key must not be "
                    "used, add --again; then pair every device again.",
                )
            keys.rotate()
        current, following = keys.current(), keys.next()
        is_used = keys.has_served(current)
    if args.json:
        print_json({"pin": current.pin, "next_pin": following.pin, "in_use": is_used})
        return 0
    print(f"  pin       {current.pin}{'' if is_used else '  (from the next start of the coordinator)'}")
    print(f"  next pin  {following.pin}")
    return 0
