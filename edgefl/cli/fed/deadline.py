"""`edgefl fed deadline`: change the deadline of rounds."""

import argparse

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import connect, path_of
from edgefl.cli.tables import print_json

__all__ = ["add_parser"]

_MORE = (
    "\nThe deadline of the open round moves by the difference. Devices that already have their task\n"
    "keep the old deadline."
)


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = add_action(actions, "deadline", run, help="change the deadline of a federation's rounds", more=_MORE)
    parser.add_argument("deadline", metavar="TIME", help="new deadline, such as 90s, 10min or 2h")


def run(args: argparse.Namespace) -> int:
    """Change the deadline, and print when the open round closes."""
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
