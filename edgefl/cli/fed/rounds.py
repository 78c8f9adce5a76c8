"""`edgefl fed rounds`: list rounds and their results."""

import argparse
from typing import Any

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import connect, path_of
from edgefl.cli.tables import cell, print_json, print_table

__all__ = ["add_parser"]

_HEAD = (
    *("round", "state", "because", "updates", "refused", "expired"),
    *("loss", "accuracy", "judged", "on devices", "took", "traffic", "model"),
)


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    add_action(actions, "rounds", run, help="list the rounds of a federation and their results")


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    with connect(args) as api:
        told = api.get(path_of("federations", args.name, "rounds"))
    if args.json:
        print_json(told)
        return 0
    print_table(_HEAD, [_row(one) for one in told["rounds"]], "no round has been opened yet")
    return 0


def _row(one: dict[str, Any]) -> tuple[object, ...]:
    from edgefl.values.formatting import format_bytes, format_percent, format_seconds

    report = one["report"] or {}
    end = one["done_at"] or one["closed_at"]
    traffic = None if not report else format_bytes(report["down_bytes"] + report["up_bytes"])
    return (
        "personal" if report.get("personal") else one["number"] + 1,
        one["state"],
        one["closed_because"],
        report.get("updates"),
        report.get("refused"),
        report.get("expired"),
        None if report.get("loss") is None else float(f"{report['loss']:.4g}"),
        cell(report.get("accuracy"), format_percent),
        cell(report.get("judged_fraction"), format_percent),
        cell(report.get("device_accuracy"), format_percent),
        None if end is None else format_seconds(end - one["opened_at"]),
        traffic,
        None if one["next_model"] is None else "kept" if one.get("model_kept", True) else "dropped",
    )
