"""`edgefl conformance`: lead a client through every situation of the protocol, and print what it did wrong.

The run functions import the suite, which needs an engine; the help text must work without it.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from edgefl.cli.optional_dependencies import requires_extra
from edgefl.errors import EdgeFLError

if TYPE_CHECKING:
    from edgefl.conformance.client_starts import Invitation, StartClient
    from edgefl.conformance.director import RowOutcome

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl conformance serve
  edgefl conformance serve --only uploads,polling/retry-after --json
  edgefl conformance serve --client "java -jar client.jar {url} --key {key} --data {data} --home {home}"
  edgefl conformance data --out mine.npz

docs/conformance.md says what every row asks for.
"""
_DESCRIPTION = """\
Play a coordinator that leads any client through every situation of the protocol, and print what the client
had to do, what it did, and whether that was right. Needs the extra 'simulate' or 'coordinator'.
"""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command and its subcommands."""
    parser = verbs.add_parser(
        "conformance",
        help="check whether a client keeps to the protocol",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_serve(actions)
    data = actions.add_parser(
        "data",
        help="write the samples that the client must be given",
        description="Write the samples that the client under test must train on, as an .npz file.",
    )
    data.add_argument("--out", required=True, metavar="FILE", help="output file, such as mine.npz")
    data.set_defaults(run=run_data)


def _add_serve(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    serve = actions.add_parser(
        "serve",
        help="lead a client through the situations, and print the table",
        description="Play the coordinator until a client has been through every situation; then print the table on\n"
        "stdout. The exit code is 1 if a row is wrong. Progress and how to start the client are on stderr.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    serve.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="address to listen on")
    serve.add_argument("--port", type=int, default=0, metavar="N", help="port (default: a free one)")
    serve.add_argument(
        "--tls", action="store_true", help="serve over TLS with a pinned key; needs the extra 'coordinator'"
    )
    serve.add_argument("--only", metavar="ROW,...", help="these rows or themes alone, separated by commas")
    serve.add_argument(
        "--client",
        metavar="COMMAND",
        help="start the client with this command, in which {url}, {key}, {uri}, {data} and {home} are replaced",
    )
    serve.add_argument("--log", metavar="FILE", help="with --client: what the client prints (default: thrown away)")
    serve.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        metavar="N",
        help="give up a row after N seconds without a request (default: 60)",
    )
    serve.add_argument("--json", action="store_true", help="print JSON on stdout")
    serve.add_argument("--out", metavar="FILE", help="also write the report as JSON to this file")
    serve.set_defaults(run=run_serve)


def run_data(args: argparse.Namespace) -> int:
    """Write the samples."""
    from edgefl.conformance.samples import write_samples

    write_samples(Path(args.out))
    return 0


def run_serve(args: argparse.Namespace) -> int:
    """Run the suite, and print its report."""
    if not 0 < args.seconds < float("inf"):
        raise EdgeFLError(f"--seconds is {args.seconds}", fix="Give a number above 0.")
    with requires_extra("simulate", action="The conformance suite"):
        from edgefl.conformance.catalogue import chosen_rows
        from edgefl.conformance.report import HEAD, report_json, report_rows, summary
        from edgefl.conformance.suite import SuiteSettings, is_passed, run_suite
        from edgefl.conformance.tasks import offer, right_result

        right_result(offer("warm-up", "nobody"))  # cuts and runs a graph: what is missing is said here
    from edgefl.artifacts.artifact_store import write_atomically
    from edgefl.cli.tables import print_json, print_table

    rows = chosen_rows(None if args.only is None else [word.strip() for word in args.only.split(",")])
    settings = SuiteSettings(host=args.host, port=args.port, patience=args.seconds, has_tls=args.tls)
    outcomes = run_suite(rows, _start(args), settings, progress=_progress(len(rows)))
    report = report_json(outcomes)
    if args.out is not None:
        write_atomically(Path(args.out), (json.dumps(report, indent=2) + "\n").encode())
    if args.json:
        print_json(report)
    else:
        print_table(HEAD, report_rows(outcomes), "no rows")
        print(f"\n{summary(outcomes)}")
    return 0 if is_passed(outcomes) else 1


def _start(args: argparse.Namespace) -> "StartClient":
    from edgefl.conformance.client_starts import CommandClient, HandStartedClient, RunningClient

    def start(invitation: "Invitation") -> RunningClient:
        if args.client is not None:
            return CommandClient(args.client, invitation, Path(args.log or "/dev/null"))
        _say(_instructions(invitation))
        return HandStartedClient()

    return start


def _instructions(invitation: "Invitation") -> str:
    again = "Start the same client again" if invitation.is_again else "Start a client that has never joined"
    return (
        f"\n{again} (part {invitation.act!r}), and give it:\n"
        f"  address  {invitation.url}\n"
        f"  key      {invitation.key}\n"
        f"  or both  {invitation.uri}\n"
        f"  data     {invitation.data}, which `edgefl conformance data` writes too; a tenth is held out\n"
        f"  home     a folder of its own, such as {invitation.home}\n"
        f"With this project's agent:\n"
        f"  edgefl join '{invitation.uri}' --data {invitation.data} --home {invitation.home}\n"
    )


def _progress(count: int) -> "Callable[[RowOutcome], None]":
    done = 0

    def progress(outcome: "RowOutcome") -> None:
        nonlocal done
        done += 1
        _say(f"[{done:>3}/{count}] {outcome.row.name:<26} {outcome.verdict.value}")

    return progress


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
