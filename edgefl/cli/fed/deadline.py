"""`edgefl fed deadline`: change the deadline of rounds."""

import argparse

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import connect, path_of
from edgefl.cli.tables import print_json
from edgefl.errors import EdgeFLError

__all__ = ["add_parser"]

_MORE = (
    "\nThe deadline of the open round moves by the difference, or is set with --closes-in. Devices that\n"
    "already have their task keep the old deadline."
)


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = add_action(actions, "deadline", run, help="change the deadline of a federation's rounds", more=_MORE)
    parser.add_argument(
        "deadline", metavar="TIME", nargs="?", help="new deadline, such as 90s, 10min or 2h (default: as it is)"
    )
    parser.add_argument("--closes-in", metavar="TIME", help="time from now until the open round closes")


def run(args: argparse.Namespace) -> int:
    """Change the deadline, and print when the open round closes."""
    from edgefl.cli.arguments import quantity
    from edgefl.values.formatting import format_seconds, printable
    from edgefl.values.quantities import Seconds

    if args.deadline is None and args.closes_in is None:
        raise EdgeFLError("there is nothing to change", fix="Give a new deadline, or --closes-in, or both.")
    closes_in = {} if args.closes_in is None else {"closes_in": quantity(Seconds, args.closes_in, "--closes-in")}
    given = None if args.deadline is None else quantity(Seconds, args.deadline, "TIME")
    with connect(args) as api:
        federation = path_of("federations", args.name)
        seconds = api.get(federation)["settings"]["rounds"]["deadline"] if given is None else given
        changed = api.put(path_of("federations", args.name, "deadline"), {"seconds": seconds} | closes_in)
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
