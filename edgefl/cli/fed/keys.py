"""`edgefl fed key`, `keys`, `revoke-key` and `revoke-device`: manage join keys and devices."""

import argparse
import sys

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import connect, path_of
from edgefl.cli.fed.lifetimes import seconds
from edgefl.cli.tables import print_json, print_table
from edgefl.errors import EdgeFLError

__all__ = ["add_parser"]

_HEAD = ("id", "label", "made", "uses", "of", "expires", "state")


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommands."""
    key = add_action(
        actions,
        "key",
        run_key,
        help="make a join key for devices",
        more=" It is printed once; only its hash is stored.",
    )
    key.add_argument(
        "--uses", type=int, metavar="N", help="number of devices that may join with it (default: no limit)"
    )
    key.add_argument("--expires", metavar="TIME", help="lifetime, such as 7d or '12 h' (default: no limit)")
    key.add_argument("--label", metavar="TEXT", default="", help="a note for your own list")
    add_action(actions, "keys", run_keys, help="list the join keys of a federation")
    revoke = add_action(
        actions,
        "revoke-key",
        run_revoke_key,
        help="revoke a join key",
        more=" Devices that already joined with it stay.",
    )
    revoke.add_argument("id", metavar="ID", help="ID of the key (see `edgefl fed keys`)")
    revoke = add_action(
        actions,
        "revoke-device",
        run_revoke_device,
        help="remove a device permanently",
        more=" Its outstanding update is no longer awaited.",
    )
    revoke.add_argument("id", metavar="ID", help="ID of the device (see `edgefl fed devices`)")


def run_key(args: argparse.Namespace) -> int:
    """Make a key and print it."""
    if args.uses is not None and args.uses < 1:
        raise EdgeFLError(f"--uses is {args.uses}", fix="Give a number of at least 1.")
    body = {
        "label": args.label,
        "most_uses": args.uses,
        "expires_seconds": None if args.expires is None else seconds(args.expires, "--expires"),
    }
    with connect(args) as api:
        made = api.post(path_of("federations", args.name, "keys"), body | {"address": api.url})
    if args.json:
        print_json(made)
        return 0
    print(made["key"])
    print(
        f"This is key {made['id']}. It will not be shown again; give it to the devices in EDGEFL_JOIN_KEY.",
        file=sys.stderr,
    )
    if made.get("uri"):  # an older coordinator has none
        print(f"Or give them its pairing URI in EDGEFL_JOIN_URI:\n{made['uri']}", file=sys.stderr)
    return 0


def run_keys(args: argparse.Namespace) -> int:
    """Print the list of keys."""
    from edgefl.values.formatting import format_ago, format_seconds

    with connect(args) as api:
        told = api.get(path_of("federations", args.name, "keys"))
    if args.json:
        print_json(told)
        return 0
    rows = []
    for key in told["keys"]:
        left = None if key["expires_at"] is None else key["expires_at"] - api.now
        spent = key["most_uses"] is not None and key["uses"] >= key["most_uses"]
        state = "revoked" if key["revoked_at"] else "expired" if left is not None and left <= 0 else "good"
        expires = "never" if left is None else f"in {format_seconds(round(left))}" if left > 0 else "over"
        made = format_ago(key["created_at"], api.now)
        state = "used up" if spent and state == "good" else state
        rows.append((key["id"], key["label"], made, key["uses"], key["most_uses"], expires, state))
    print_table(_HEAD, rows, f"no join key; make one with: edgefl fed key {args.name}")
    return 0


def run_revoke_key(args: argparse.Namespace) -> int:
    """Revoke a key."""
    return _revoke(args, "keys", "key")


def run_revoke_device(args: argparse.Namespace) -> int:
    """Revoke a device."""
    return _revoke(args, "devices", "device")


def _revoke(args: argparse.Namespace, kind: str, word: str) -> int:
    with connect(args) as api:
        api.delete(path_of("federations", args.name, kind, args.id))
    if args.json:
        print_json({"id": args.id, "revoked": True})
    else:
        print(f"{word} {args.id} is revoked")
    return 0
