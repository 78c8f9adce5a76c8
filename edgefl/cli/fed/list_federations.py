"""`edgefl fed list`: list the federations of a coordinator."""

import argparse

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import connect, path_of
from edgefl.cli.fed.status import accuracy_of
from edgefl.cli.tables import cell, print_json, print_table

__all__ = ["add_parser"]

_HEAD = ("name", "state", "strategy", "model", "rounds done", "of", "devices", "accuracy")


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    add_action(actions, "list", run, help="list the federations of a coordinator", about=False)


def run(args: argparse.Namespace) -> int:
    """Print the list."""
    with connect(args) as api:
        told = api.get(path_of("federations"))
    if args.json:
        print_json(told)
        return 0
    from edgefl.values.formatting import format_percent

    rows = [
        (
            *(one["name"], one["state"], one["strategy"], one["model"]),
            *(one["rounds_done"], one["rounds"], one["devices"], cell(accuracy_of(one["report"]), format_percent)),
        )
        for one in told["federations"]
    ]
    print_table(_HEAD, rows, "no federations; create one with: edgefl fed create FILE")
    return 0
