"""`edgefl fed` itself: its help text, and the parsers of its verbs."""

import argparse

from edgefl.cli.fed import create, deadline, devices, downloads, keys, list_federations, rounds, start_and_stop, status

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl fed create federation.toml && edgefl fed start digits
  edgefl fed status digits --watch
  edgefl fed deadline digits 20min
  edgefl fed key digits --uses 20 --expires 7d --label "the lab"
  edgefl fed telemetry digits --format parquet --out telemetry.parquet
  edgefl fed export digits --device pi-3 --out pi-3.onnx
  edgefl fed list --url https://10.0.0.5:8443 --certificate certificate.pem --token-file admin-token
"""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb `fed` with its sub-verbs."""
    parser = verbs.add_parser(
        "fed",
        help="look after the federations of a coordinator",
        description="Create, start, watch and end the federations of a coordinator, let devices in, and take out what\n"
        "came of it. Needs the extra 'coordinator'.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for verb in (create, start_and_stop, deadline, list_federations, status, rounds, devices, downloads, keys):
        verb.add_parser(actions)
