"""`edgefl bench infer`: compare dense, sparse and 8-bit models."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgefl.cli.bench.options import add_model, add_output, add_pace, benchmark_model_of, numbers, pace_of, words
from edgefl.cli.bench.output import BenchProgress, Columns, picture_file, ratio_cell, show, tail_of
from edgefl.errors import EdgeFLError

if TYPE_CHECKING:
    from edgefl.bench.infer import InferRequest
    from edgefl.bench.report import BenchReport
    from edgefl.cli.bench.bar_chart import Bar

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl bench infer vgg16 --keep 0.3
  edgefl bench infer --bundle exported/cnn4 --data fashion-mnist --plot speed.svg
  edgefl bench infer --file dense.onnx --file sparse.onnx     on a device that has onnxruntime and nothing else

Each model runs in its own process and predicts one sample per turn. The sparse model keeps at most --keep of the
parameters, with layer widths that suit the kernels; without --keep, the personal submodel of the bundle is used if it
has one. Memory is the growth of the process's peak from before the model is loaded to the end of the warm-up.
"""
_DEFAULT = "vgg16"


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = actions.add_parser(
        "infer",
        help="compare dense, sparse and 8-bit models: latency, memory, energy, file size, accuracy",
        description="Compare a model with its sparse and 8-bit versions on every installed engine.\n"
        "Needs the extra 'device', and 'export' for models that are not exported yet.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_model(parser, _DEFAULT)
    parser.add_argument(
        "--file", action="append", default=[], metavar="FILE", help="a finished .onnx or .pte model; repeatable"
    )
    parser.add_argument("--keep", type=float, metavar="F", help="fraction of the parameters to keep (default: 0.3)")
    parser.add_argument(
        "--multiple", type=int, default=16, metavar="N", help="make layer widths multiples of N (default: 16)"
    )
    parser.add_argument(
        "--engine", default="onnx,executorch", metavar="LIST", help="engines (default: onnx,executorch)"
    )
    parser.add_argument(
        "--form", metavar="LIST", help="any of dense, sparse, dense int8, sparse int8, comma-separated (default: all)"
    )
    parser.add_argument("--data", metavar="NAME|PATH", help="data for 8-bit calibration and accuracy (default: none)")
    parser.add_argument("--folder", metavar="DIR", help="folder of the named data set (default: $EDGEFL_DATA/NAME)")
    add_pace(parser, turns=100)
    add_output(parser, run)


def run(args: argparse.Namespace) -> int:
    """Run the benchmark and print the report."""
    plot, progress = picture_file(args), BenchProgress()
    try:
        report = _measured(args, progress)
    finally:
        progress.done()
    setting = report.setting
    what = ", ".join(Path(file).name for file in setting.get("files", ())) or setting["model"]
    kept = f", {setting['kept']:.1%} of the parameters kept" if "kept" in setting else ""
    title = f"{what}{kept}: one sample, {setting['threads']} threads, {setting['turns']} turns"
    base = "the first" if "files" in setting else "dense"
    slowest = "p99" if setting["turns"] >= 100 else "max"
    head = ("model", "file", "p50", "p90", slowest, "min", f"faster than {base}", "memory", "energy", "accuracy")
    columns = Columns(title, head, _cells, _bar, f"times faster than {base}, and quartiles")
    return show(report, columns, as_json=args.json, plot=plot)


def _measured(args: argparse.Namespace, progress: BenchProgress) -> "BenchReport":
    from edgefl.bench.infer import infer_files, infer_model

    request = _order(args, progress)
    if not args.file:
        return infer_model(benchmark_model_of(args, _DEFAULT), request)
    if args.model is not None or args.bundle is not None:
        raise EdgeFLError("both --file and a model are given", fix="Give only one of --file, a model, and --bundle.")
    shape = None if args.input is None else numbers(args.input, "--input")
    return infer_files([Path(file) for file in args.file], request, shape)


def _order(args: argparse.Namespace, progress: BenchProgress) -> "InferRequest":
    from edgefl.bench.infer import InferRequest
    from edgefl.bench.inference_files import FORMS
    from edgefl.data import load

    if args.keep is not None and not 0 < args.keep <= 1:
        raise EdgeFLError(f"--keep is {args.keep:g}", fix="Give a fraction above 0 and at most 1.")
    return InferRequest(
        pace_of(args),
        engines=words(args.engine),
        forms=FORMS if args.form is None else words(args.form),
        keep=args.keep,
        multiple=args.multiple,
        data=None if args.data is None else load(args.data, args.folder),
        progress=progress,
    )


def _cells(row: Mapping[str, Any]) -> list[object]:
    from edgefl.values.formatting import format_bytes, format_joules, format_percent, format_seconds

    seconds, energy = row["seconds"], row["energy"]
    times = [format_seconds(value) for value in (seconds["p50"], seconds["p90"], tail_of(seconds), seconds["min"])]
    return [
        row["name"],
        format_bytes(row["file_bytes"]),
        *times,
        ratio_cell(row["speed_up"]),
        format_bytes(row["memory"]["beyond_bytes"]),
        None if energy is None else format_joules(energy["joules_each"]),
        None if row["accuracy"] is None else format_percent(row["accuracy"]["right"]),
    ]


def _bar(row: Mapping[str, Any]) -> "Bar | None":
    from edgefl.cli.bench.bar_chart import Bar

    found = row["speed_up"]
    return None if found is None else Bar(row["name"], found["ratio"], found["low"], found["high"])
