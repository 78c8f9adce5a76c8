"""The parser of `edgefl fed` and its subcommands."""

import argparse

from edgefl.cli.fed import (
    audit,
    create,
    deadline,
    devices,
    downloads,
    keys,
    list_federations,
    programs,
    rounds,
    start_and_stop,
    status,
    tokens,
)

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl fed create federation.toml && edgefl fed start digits
  edgefl fed status digits --watch
  edgefl fed deadline digits 20min
  edgefl fed key digits --uses 20 --expires 7d --label "the lab"
  edgefl fed telemetry digits --format parquet --out telemetry.parquet
  edgefl fed export digits --device pi-3 --out pi-3.onnx
  edgefl fed tokens create alice --role admin --expires "30 days"
  edgefl fed audit --since "7 days" --json
  edgefl fed list --url https://10.0.0.5:8443 --certificate certificate.pem --token-file admin-token
"""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its subcommands."""
    parser = verbs.add_parser(
        "fed",
        help="manage the federations of a coordinator",
        description="Create, start, watch and end the federations of a coordinator, let devices join, and download\n"
        "models and telemetry. Needs the extra 'coordinator'.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    verbs_of_federations = (
        create,
        start_and_stop,
        deadline,
        list_federations,
        status,
        rounds,
        devices,
        programs,
        downloads,
        keys,
    )
    for verb in (*verbs_of_federations, tokens, audit):
        verb.add_parser(actions)
