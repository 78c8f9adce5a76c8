"""`edgefl fed tokens`: list, create, rotate and revoke the operators' tokens."""

import argparse
import sys
from typing import Any

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import Api, connect, path_of
from edgefl.cli.fed.lifetimes import seconds
from edgefl.cli.tables import print_json, print_table
from edgefl.errors import EdgeFLError

__all__ = ["add_parser"]

_HEAD = ("name", "role", "made", "last used", "expires", "state")
_MORE = """ Without a verb, list them: a token that is in the
state folder, or that the coordinator is configured with, has the name of its role.

  create NAME   make a token for a person or a program; it is printed once, only its hash is stored
  rotate NAME   replace a token by a new one, which is printed once; the old one is no longer valid
  revoke NAME   end a token, on all workers at once; the last admin token cannot be revoked"""


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = add_action(actions, "tokens", run, help="manage the tokens of operators", more=_MORE, about=False)
    parser.add_argument(
        "verb", nargs="?", choices=["list", "create", "rotate", "revoke"], default="list", help="see above"
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="name of the token")
    parser.add_argument("--role", choices=["admin", "viewer"], help="what a new token may do (default: viewer)")
    parser.add_argument(
        "--expires",
        metavar="TIME",
        help="lifetime of a new token, such as 30d or '30 days' (default: no limit; for rotate: as long as before)",
    )
    parser.add_argument("--all", action="store_true", help="also list tokens that were revoked or replaced")


def run(args: argparse.Namespace) -> int:
    """Do what the verb says."""
    _check(args)
    with connect(args) as api:
        if args.verb == "list":
            return _list(args, api)
        if args.verb == "revoke":
            api.delete(path_of("tokens", args.name))
            if args.json:
                print_json({"name": args.name, "revoked": True})
            else:
                print(f"token {args.name} is revoked")
            return 0
        lifetime = None if args.expires is None else seconds(args.expires, "--expires")
        if args.verb == "create":
            body = {"name": args.name, "role": args.role or "viewer", "expires_seconds": lifetime}
            return _show(args, api.post(path_of("tokens"), body))
        return _show(args, api.post(path_of("tokens", args.name, "rotate"), {"expires_seconds": lifetime}))


def _check(args: argparse.Namespace) -> None:
    """Refuse words that the verb does not understand."""
    if args.verb == "list" and args.name is not None:
        raise EdgeFLError(f"there is no list of {args.name!r}", fix="List all tokens with: edgefl fed tokens")
    if args.verb != "list" and args.name is None:
        raise EdgeFLError(f"which token to {args.verb}?", fix=f"Give its name: edgefl fed tokens {args.verb} NAME")
    allowed = {"list": {"all"}, "create": {"role", "expires"}, "rotate": {"expires"}, "revoke": set()}[args.verb]
    for option in ("role", "expires", "all"):
        if getattr(args, option) and option not in allowed:
            raise EdgeFLError(f"--{option} has no meaning for {args.verb}", fix="Leave it out.")


def _show(args: argparse.Namespace, made: dict[str, Any]) -> int:
    if args.json:
        print_json(made)
        return 0
    print(made["token"])
    print(f"This is the {made['role']} token {made['name']}, shown this once.", file=sys.stderr)
    return 0


def _list(args: argparse.Namespace, api: Api) -> int:
    from edgefl.values.formatting import format_ago, format_seconds

    told = api.get(path_of("tokens"))
    if args.json:
        print_json(told)
        return 0
    rows = []
    for token in told["tokens"]:
        if token["revoked_at"] is not None and not args.all:
            continue
        left = None if token["expires_at"] is None else token["expires_at"] - api.now
        expires = "never" if left is None else f"in {format_seconds(round(left))}" if left > 0 else "over"
        state = "revoked" if token["revoked_at"] else "expired" if left is not None and left <= 0 else "good"
        made, used = format_ago(token["created_at"], api.now), format_ago(token["used_at"], api.now)
        rows.append((token["name"], token["role"], made, used, expires, state))
    print_table(_HEAD, rows, "no token")
    return 0
