"""`edgefl bench plan`: run time, bias, bound and gap of the planners."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from edgefl.cli.bench.options import add_model, add_output, benchmark_model_of, numbers, words
from edgefl.cli.bench.output import BenchProgress, Columns, picture_file, show

if TYPE_CHECKING:
    from edgefl.cli.bench.bar_chart import Bar

__all__ = ["add_parser"]


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = actions.add_parser(
        "plan",
        help="compare planners on fleets of several sizes: run time, bias, bound, gap",
        description="Plan which layers each device of a fleet trains, with every method: how long planning takes,\n"
        "and how far the plan can be from the optimum. Needs the extra 'coordinator'.",
    )
    add_model(parser, "PerFedMask's MobileNet, which needs no torch")
    parser.add_argument(
        "--devices", default="10,100,1000,10000", metavar="LIST", help="fleet sizes (default: 10,100,1000,10000)"
    )
    parser.add_argument(
        "--method",
        default="auto,sca,sequential,random",
        metavar="LIST",
        help="planners (default: auto,sca,sequential,random)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the fleets (default: 0)")
    add_output(parser, run)


def run(args: argparse.Namespace) -> int:
    """Run the benchmark and print the report."""
    from edgefl.bench.plan import MOBILENET, mobilenet_blocks, plan_report
    from edgefl.planning import freezing_blocks

    plot, progress = picture_file(args), BenchProgress()
    if args.model is None and args.bundle is None:
        name, blocks = MOBILENET, mobilenet_blocks()
    else:
        bench_model = benchmark_model_of(args, "")
        name, blocks = bench_model.name, list(freezing_blocks(bench_model.bundle.graph))
    sizes, methods = numbers(args.devices, "--devices"), words(args.method)
    try:
        report = plan_report(blocks, name, sizes, methods=methods, seed=args.seed, progress=progress)
    finally:
        progress.done()
    title = f"{name}: {len(blocks)} blocks, {report.setting['parameters']:,} parameters without the head"
    head = ("fleet", "method", "seconds", "bias", "bound", "gap", "unused")
    return show(report, Columns(title, head, _cells, _bar, "seconds"), as_json=args.json, plot=plot)


def _cells(row: Mapping[str, Any]) -> list[object]:
    millions = [f"{row[name] / 1e6:.3f}M" for name in ("bias", "lower_bound")]
    unused = f"{row['unused'] / 1e6:.3f}M"
    return [
        f"{row['devices']:,} devices",
        row["method"],
        round(row["seconds"], 3),
        *millions,
        f"{row['gap']:.2%}",
        unused,
    ]


def _bar(row: Mapping[str, Any]) -> "Bar | None":
    from edgefl.cli.bench.bar_chart import Bar

    return Bar(row["name"], row["seconds"])
