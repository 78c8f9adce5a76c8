"""`edgefl fed create`: create a federation from its TOML file on a running coordinator."""

import argparse
import sys
from pathlib import Path

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import connect, path_of
from edgefl.cli.tables import print_json

__all__ = ["add_parser"]


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = add_action(
        actions,
        "create",
        run,
        help="create a federation from its TOML file",
        more=" The model is uploaded with it.\nEvaluation data must be on the coordinator's machine. Start the"
        "\nfederation with `edgefl fed start`, and let devices join with `edgefl fed key`.",
        about=False,
    )
    parser.add_argument("file", metavar="FILE", help="the federation file; see examples/coordinator/")


def run(args: argparse.Namespace) -> int:
    """Check the file, upload the bundle, then the settings."""
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
