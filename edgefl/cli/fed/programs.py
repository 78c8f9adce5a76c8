"""`edgefl fed programs`: list the ExecuTorch programs of a federation: ready, wanted, being compiled, failed."""

import argparse
from typing import Any

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import connect, path_of
from edgefl.cli.tables import print_json, print_table

__all__ = ["add_parser"]

_HEAD = ("role", "rung", "state", "since", "size", "peak memory", "made with", "key")
_WIDEST = 100
_KEY = len("sha256:") + 12


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    add_action(actions, "programs", run, help="list the ExecuTorch programs of a federation, ready and wanted")


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    with connect(args) as api:
        programs = api.get(path_of("federations", args.name, "programs"))["programs"]
    if args.json:
        print_json({"programs": programs})
        return 0
    rows = [_row(program, api.now) for program in programs]
    print_table(
        _HEAD, rows, "no program is there, and no device wants one; compile the ladder with: edgefl compile --all"
    )
    return 0


def _row(program: dict[str, Any], now: float) -> tuple[object, ...]:
    from edgefl.values.formatting import format_ago, format_bytes

    sizes = (program[name] for name in ("size", "peak_bytes"))
    return (
        program["role"],
        program["rung"],
        _state(program),
        format_ago(program["changed_at"], now),
        *(None if size is None else format_bytes(size) for size in sizes),
        program["made_with"],
        program["key"][:_KEY],
    )


def _state(program: dict[str, Any]) -> str:
    """'ready', 'wanted by 3 plans', 'compiling at lab-pc-1', 'failed 3 times: ...'."""
    from edgefl.values.formatting import pluralise

    state = str(program["state"])
    if state == "compiling":
        return f"compiling at {program['worker']}"[:_WIDEST]
    if state == "failed" or (state == "wanted" and program["reason"]):
        times = f" {pluralise(program['tries'], 'time')}" if program["tries"] else ""
        return f"{'' if state == 'failed' else 'wanted, '}failed{times}: {program['reason']}"[:_WIDEST]
    return f"wanted by {pluralise(program['demand'], 'plan')}" if state == "wanted" and program["demand"] else state
