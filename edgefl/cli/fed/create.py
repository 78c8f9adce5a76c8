"""`edgefl fed create`: a federation from its TOML file, on a coordinator that runs already."""

import argparse
import sys
from pathlib import Path

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import connect, path_of
from edgefl.cli.tables import print_json

__all__ = ["add_parser"]


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = add_action(
        actions,
        "create",
        run,
        help="create a federation from its TOML file",
        more=" The model is sent along.\nData to evaluate on must be on the coordinator's machine. Start it with"
        "\n`edgefl fed start`, and let devices in with `edgefl fed key`.",
        about=False,
    )
    parser.add_argument("file", metavar="FILE", help="the federation file; examples/coordinator/ has some")


def run(args: argparse.Namespace) -> int:
    """Check the file, send the bundle, then the settings."""
    from coordinator.federations.federation_file import read_federation_file
    from edgefl.values import to_json

    file = read_federation_file(Path(args.file))
    with connect(args) as api:
        bundle = api.send(path_of("bundles"), file.bundle(), "application/zip")
        made = api.post(path_of("federations"), {"settings": to_json(file.settings), "bundle": bundle["digest"]})
    if args.json:
        print_json(made)
        return 0
    name = file.settings.name
    print(f"federation {name}: {made['state']}")
    if made["state"] == "created":
        print(f"Next: edgefl fed key {name}; edgefl fed start {name}", file=sys.stderr)
    return 0
