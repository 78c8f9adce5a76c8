"""`edgefl fed list`: every federation of a coordinator, a line each."""

import argparse

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import connect, path_of
from edgefl.cli.fed.tables import accuracy_of, percent, print_json, print_table

__all__ = ["add_parser"]

_HEAD = ("name", "state", "strategy", "model", "rounds done", "of", "devices", "accuracy")


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    add_action(actions, "list", run, help="list the federations of a coordinator", about=False)


def run(args: argparse.Namespace) -> int:
    """Print the list."""
    with connect(args) as api:
        told = api.get(path_of("federations"))
    if args.json:
        print_json(told)
        return 0
    rows = [
        (
            *(one["name"], one["state"], one["strategy"], one["model"]),
            *(one["rounds_done"], one["rounds"], one["devices"], percent(accuracy_of(one["report"]))),
        )
        for one in told["federations"]
    ]
    print_table(_HEAD, rows, "no federation; create one with: edgefl fed create FILE")
    return 0
