"""`edgefl bench wire`: bits per parameter of every codec and uplink."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from edgefl.cli.bench.options import add_model, add_output, benchmark_model_of
from edgefl.cli.bench.output import Columns, picture_file, show

if TYPE_CHECKING:
    from edgefl.cli.bench.bar_chart import Bar

__all__ = ["add_parser"]

_DEFAULT = "cnn4"


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = actions.add_parser(
        "wire",
        help="measure bits per parameter of every codec and uplink, headers included",
        description="Encode and decode an update of a model with every codec, and as every strategy sends it.\n"
        "cnn4, preresnet18 and mlp need no torch; other models are exported first.",
    )
    add_model(parser, _DEFAULT)
    parser.add_argument("--turns", type=int, default=15, metavar="N", help="measured turns of each (default: 15)")
    add_output(parser, run)


def run(args: argparse.Namespace) -> int:
    """Run the benchmark and print the report."""
    from edgefl.bench.wire import wire_report

    plot = picture_file(args)
    report = wire_report(benchmark_model_of(args, _DEFAULT), turns=args.turns)
    title = f"{report.setting['model']}: {report.setting['parameters']:,} parameters, medians of {args.turns} turns"
    head = ("body", "parameters", "bytes", "header", "bits each", "encode", "decode", "again")
    return show(report, Columns(title, head, _cells, _bar, "bits per parameter"), as_json=args.json, plot=plot)


def _cells(row: Mapping[str, Any]) -> list[object]:
    from edgefl.values.formatting import format_seconds

    return [
        row["name"],
        row["parameters"],
        row["bytes"],
        row["header_bytes"],
        round(row["bits_per_parameter"], 4),
        format_seconds(row["encode_seconds"]["p50"]),
        format_seconds(row["decode_seconds"]["p50"]),
        format_seconds(row["decode_again_seconds"]["p50"]),
    ]


def _bar(row: Mapping[str, Any]) -> "Bar | None":
    from edgefl.cli.bench.bar_chart import Bar

    return Bar(row["name"], row["bits_per_parameter"])
