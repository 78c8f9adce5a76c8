"""`edgefl bench train`: compare the training step of every engine with PyTorch's."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from edgefl.cli.bench.options import add_model, add_output, add_pace, benchmark_model_of, numbers, pace_of, words
from edgefl.cli.bench.output import BenchProgress, Columns, picture_file, ratio_cell, show, tail_of

if TYPE_CHECKING:
    from edgefl.cli.bench.bar_chart import Bar

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl bench train cnn4 --batch 32,8
  edgefl bench train preresnet18 --engine pytorch,onnx --part full,half,head
  edgefl bench train --bundle exported/cnn4 --json        without torch: installed engines only

A step computes the loss and all gradients of one batch. The optimiser is left out: it is the same numpy code for all
engines. Without torch and --bundle, only cnn4, preresnet18 and mlp can be measured: their graphs are built in.
"""
_DEFAULT = "cnn4"


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = actions.add_parser(
        "train",
        help="compare the training step of every engine with PyTorch",
        description="Time one training step of every engine, and of PyTorch if it is installed.\n"
        "Needs the extra 'device'; PyTorch and ExecuTorch come with the extra 'export'.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(parser, _DEFAULT)
    parser.add_argument("--batch", default="32", metavar="LIST", help="batch sizes (default: 32)")
    parser.add_argument(
        "--engine", default="pytorch,onnx,executorch", metavar="LIST", help="engines (default: pytorch,onnx,executorch)"
    )
    parser.add_argument(
        "--part",
        default="full",
        metavar="LIST",
        help="any of full, half (of the channels), head (only it trained) (default: full)",
    )
    add_pace(parser, turns=30)
    add_output(parser, run)


def run(args: argparse.Namespace) -> int:
    """Run the benchmark and print the report."""
    from edgefl.bench.train import TrainRequest, train_model

    plot, progress = picture_file(args), BenchProgress()
    request = TrainRequest(
        pace_of(args),
        engines=words(args.engine),
        batches=numbers(args.batch, "--batch"),
        parts=words(args.part),
        progress=progress,
    )
    try:
        report = train_model(benchmark_model_of(args, _DEFAULT), request)
    finally:
        progress.done()
    setting = report.setting
    title = f"{setting['model']}: one training step, {setting['threads']} threads, {setting['turns']} turns"
    slowest = "p99" if setting["turns"] >= 100 else "max"
    head = (
        "engine",
        "p50",
        "p90",
        slowest,
        "min",
        "time / PyTorch's",
        "/ whole model's",
        "memory",
        "energy",
        "loss",
    )
    columns = Columns(title, head, _cells, _bar, "times PyTorch's seconds, and quartiles")
    return show(report, columns, as_json=args.json, plot=plot)


def _cells(row: Mapping[str, Any]) -> list[object]:
    from edgefl.values.formatting import format_bytes, format_joules, format_seconds

    seconds, energy = row["seconds"], row["energy"]
    times = [format_seconds(value) for value in (seconds["p50"], seconds["p90"], tail_of(seconds), seconds["min"])]
    return [
        row["name"],
        *times,
        ratio_cell(row["time"]),
        ratio_cell(row["of_whole"]),
        format_bytes(row["memory"]["beyond_bytes"]),
        None if energy is None else format_joules(energy["joules_each"]),
        None if row["loss"] is None else f"{row['loss']:.5f}",
    ]


def _bar(row: Mapping[str, Any]) -> "Bar | None":
    from edgefl.cli.bench.bar_chart import Bar

    found = row["time"]
    return None if found is None else Bar(row["name"], found["ratio"], found["low"], found["high"])
