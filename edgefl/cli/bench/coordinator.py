"""`edgefl bench coordinator`: load-test a coordinator with many simulated devices."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgefl.cli.bench.options import add_output
from edgefl.cli.bench.output import BenchProgress, Columns, picture_file, show

if TYPE_CHECKING:
    from edgefl.cli.bench.bar_chart import Bar

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl bench coordinator --devices 100 --rounds 3
  edgefl bench coordinator --devices 1000 --rounds 6 --workers 2
  edgefl bench coordinator --devices 300 --buffered --train 5

The coordinator runs on a free port of 127.0.0.1 and is stopped at the end. All devices share one process: they poll,
come back when the server tells them to, and upload an update of about 50 KB each round, or one of the model given with
--bundle. Without --train, a device uploads as soon as it gets a task, so the server is as busy as it can be. With
--wait, the server holds polls open (long polling).
"""


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = actions.add_parser(
        "coordinator",
        help="load-test a coordinator: updates per second, latency, memory",
        description="Start a coordinator on this machine, let simulated devices join it, and measure it under load.\n"
        "Needs the extra 'coordinator'.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--devices", type=int, default=100, metavar="N", help="number of simulated devices (default: 100)"
    )
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="number of rounds (default: 3)")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="server processes (default: 1)")
    parser.add_argument("--bundle", metavar="DIR", help="a bundle written by `edgefl export` (default: a small model)")
    parser.add_argument(
        "--buffered", action="store_true", help="no rounds: make a new model after every --devices updates"
    )
    parser.add_argument(
        "--train", type=float, default=0.0, metavar="S", help="simulated training time in seconds (default: 0)"
    )
    parser.add_argument(
        "--wait", type=float, default=0.0, metavar="S", help="longest time a poll is held open, in seconds (default: 0)"
    )
    parser.add_argument(
        "--start",
        type=float,
        default=2.0,
        metavar="S",
        help="spread the first polls over this many seconds (default: 2)",
    )
    parser.add_argument("--download", action="store_true", help="download the weights of every task")
    parser.add_argument("--database", metavar="URL", help="database URL, such as postgresql://... (default: SQLite)")
    add_output(parser, run)


def run(args: argparse.Namespace) -> int:
    """Run the benchmark and print the report."""
    from edgefl.artifacts.bundle import read_bundle
    from edgefl.bench.load.device import Behaviour
    from edgefl.bench.load.run import load_report

    plot, progress = picture_file(args), BenchProgress()
    behaviour = Behaviour(
        devices=args.devices,
        rounds=args.rounds,
        wait=args.wait,
        start=args.start,
        train=args.train,
        buffered=args.buffered,
        download=args.download,
    )
    bundle = None if args.bundle is None else read_bundle(Path(args.bundle))
    try:
        report = load_report(behaviour, workers=args.workers, database=args.database, bundle=bundle, progress=progress)
    finally:
        progress.done()
    told = report.setting
    title = (
        f"{told['devices']:,} devices, {told['rounds']} rounds, {told['workers']} workers, "
        f"updates of {told['update_bytes'] / 1000:.1f} KB"
    )
    columns = Columns(title, ("what", "value", "p90", "p99", "max", "more"), _cells, _bar, "milliseconds, to the p90")
    return show(report, columns, as_json=args.json, plot=plot)


def _cells(row: Mapping[str, Any]) -> list[object]:
    from edgefl.values.formatting import format_bytes, format_seconds

    if "updates" in row and "seconds" in row:
        more = f"{row['updates']:,} in {format_seconds(row['seconds'])}"
        return [row["name"], f"{row['value']:.0f}", None, None, None, more]
    if "grown_most_bytes" in row:
        before = f"{format_bytes(row['before_bytes'])} after {row['before_updates']} updates"
        more = f"{before}; one process by {row['grown_most_bytes'] / 2**20:+.1f} MiB at most"
        return [row["name"], format_bytes(row["value"]), None, None, None, more]
    seconds = row.get("seconds")
    if seconds is None:
        return [row["name"], format_seconds(row["value"]), None, None, None, "with its polls"]
    others = [None if seconds[key] is None else format_seconds(seconds[key]) for key in ("p90", "p99", "max")]
    return [row["name"], format_seconds(row["value"]), *others, f"median of {seconds['turns']:,}"]


def _bar(row: Mapping[str, Any]) -> "Bar | None":
    from edgefl.cli.bench.bar_chart import Bar

    seconds = row.get("seconds")
    if not isinstance(seconds, Mapping):
        return None
    return Bar(row["name"], 1e3 * seconds["p50"], 1e3 * seconds["min"], 1e3 * seconds["p90"])
