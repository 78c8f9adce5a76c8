"""`edgefl fed start`, `pause`, `resume` and `abort`: change the state of a federation."""

import argparse

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import connect, path_of
from edgefl.cli.tables import print_json

__all__ = ["add_parser"]

_MOVES = {
    "start": ("start a federation", " Its first round opens as soon as enough devices are available."),
    "pause": ("pause a federation after its open round", ""),
    "resume": ("resume a paused federation", ""),
    "abort": (
        "end a federation permanently",
        " Its open round is dropped; the model of the last finished round stays.",
    ),
}


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommands."""
    for verb, (words, more) in _MOVES.items():
        parser = add_action(actions, verb, run, help=words, more=more)
        if verb == "abort":
            parser.add_argument("--reason", metavar="TEXT", help="reason to record with it")


def run(args: argparse.Namespace) -> int:
    """Request the transition, and print the new state."""
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
