"""The parser of one subcommand of `edgefl fed`: its help, its federation and its coordinator."""

import argparse
from collections.abc import Callable

from edgefl.cli.fed.api import add_connection

__all__ = ["Run", "add_action"]

Run = Callable[[argparse.Namespace], int]


def add_action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: Run,
    *,
    help: str,  # noqa: A002  as argparse calls it
    more: str = "",
    about: bool = True,
) -> argparse.ArgumentParser:
    """Add a subcommand. `more` is appended to its description; `about` adds the argument NAME of a federation."""
    parser = actions.add_parser(
        name,
        help=help,
        description=f"{help[0].upper()}{help[1:]}.{more}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if about:
        parser.add_argument("name", metavar="NAME", help="name of the federation")
    add_connection(parser)
    parser.set_defaults(run=run)
    return parser
