"""`edgefl fed deadline`: change how long rounds have."""

import argparse

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import connect, path_of
from edgefl.cli.tables import print_json

__all__ = ["add_parser"]

_MORE = (
    "\nThe open round closes earlier or later by the difference. Devices that have their task already\n"
    "were told the time before."
)


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = add_action(actions, "deadline", run, help="change how long the rounds of a federation have", more=_MORE)
    parser.add_argument("deadline", metavar="TIME", help="such as 90s, 10min or 2h")


def run(args: argparse.Namespace) -> int:
    """Ask for the change, and say when the open round closes."""
    from edgefl.cli.arguments import quantity
    from edgefl.values.formatting import format_seconds, printable
    from edgefl.values.quantities import Seconds

    seconds = quantity(Seconds, args.deadline, "TIME")
    with connect(args) as api:
        changed = api.put(path_of("federations", args.name, "deadline"), {"seconds": seconds})
        left = None if changed["round"] is None else changed["round"]["deadline_at"] - api.now
    if args.json:
        print_json(changed)
        return 0
    said = f"federation {changed['name']}: rounds have {format_seconds(changed['settings']['rounds']['deadline'])}"
    if left is not None and changed["round"]["state"] == "open":
        number = changed["round"]["number"]
        which = f"round {number + 1}" if number < changed["rounds"] else "personalisation"
        said += f"; {which} closes in {format_seconds(max(0.0, left))}"
    print(printable(said))
    return 0
