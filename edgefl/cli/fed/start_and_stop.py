"""`edgefl fed start`, `pause`, `resume` and `abort`."""

import argparse

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import connect, path_of
from edgefl.cli.tables import print_json

__all__ = ["add_parser"]

_MOVES = {
    "start": ("let a federation begin", " Its first round opens when enough devices are there."),
    "pause": ("let a federation end its open round and open no other one", ""),
    "resume": ("let a federation go on that is paused", ""),
    "abort": ("end a federation for good", " Its open round is dropped; the model stays as the last round left it."),
}


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verbs to the command line."""
    for verb, (words, more) in _MOVES.items():
        parser = add_action(actions, verb, run, help=words, more=more)
        if verb == "abort":
            parser.add_argument("--reason", metavar="TEXT", help="why, for those who look at it later")


def run(args: argparse.Namespace) -> int:
    """Ask for the move, and say what the federation does now."""
    from edgefl.values.formatting import printable

    reason = getattr(args, "reason", None)
    body = {} if reason is None else {"reason": reason}
    with connect(args) as api:
        moved = api.post(path_of("federations", args.name, args.action), body)
    if args.json:
        print_json(moved)
    else:
        print(printable(f"federation {moved['name']}: {moved['state']}"))
    return 0
