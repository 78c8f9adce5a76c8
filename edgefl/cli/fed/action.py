"""The parser of one verb of `edgefl fed`: its words, the federation it is about, and which coordinator."""

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
    """Add a verb; `more` follows its help in its description, and `about` is whether it is about one federation."""
    parser = actions.add_parser(
        name,
        help=help,
        description=f"{help[0].upper()}{help[1:]}.{more}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if about:
        parser.add_argument("name", metavar="NAME", help="the federation")
    add_connection(parser)
    parser.set_defaults(run=run)
    return parser
