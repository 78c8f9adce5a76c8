"""`edgefl fed telemetry` and `edgefl fed export`: download telemetry and models."""

import argparse
import contextlib
import os
import sys
import tempfile
from pathlib import Path

from edgefl.cli.fed.action import add_action
from edgefl.cli.fed.api import connect, model_of, path_of
from edgefl.cli.tables import print_json
from edgefl.errors import EdgeFLError

__all__ = ["add_parser"]


def add_parser(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommands."""
    telemetry = add_action(
        actions, "telemetry", run_telemetry, help="write the telemetry of every task, one row per task"
    )
    telemetry.add_argument(
        "--format", choices=["csv", "parquet", "json"], help="file format (default: by the file name, or csv)"
    )
    telemetry.add_argument("--out", metavar="FILE", help="output file (default: stdout)")
    export = add_action(
        actions,
        "export",
        run_export,
        help="write the latest global model or an earlier one, or a submodel of it",
        more="\nWrites a finished ONNX model, the weights alone (which `edgefl export --weights` reads), or the mask\n"
        "of the submodel. Of the global model, the first and the last are those of the part that devices hold, whose\n"
        "accuracy is reported; the weights are all of it.",
    )
    part = export.add_mutually_exclusive_group()
    part.add_argument("--device", metavar="ID", help="the submodel of this device")
    part.add_argument(
        "--budget", type=float, metavar="F", help="the best submodel with this fraction of the parameters"
    )
    part.add_argument(
        "--whole",
        action="store_true",
        help="the global model with the channels that no device holds (default: without them, except its weights)",
    )
    export.add_argument(
        "--round",
        type=int,
        metavar="N",
        help="the model after this round, if `edgefl fed rounds` shows that it is kept (default: the latest)",
    )
    export.add_argument(
        "--format",
        choices=["onnx", "weights", "mask"],
        help="what to write (default: weights if the file name ends in .safetensors, else onnx)",
    )
    export.add_argument("--out", metavar="FILE", required=True, help="output file")


def run_telemetry(args: argparse.Namespace) -> int:
    """Write the table."""
    suffix = "" if args.out is None else Path(args.out).suffix.lower()
    form = args.format or {".parquet": "parquet", ".json": "json"}.get(suffix, "csv")
    path = path_of("federations", args.name, "telemetry")
    if args.out is not None:
        return _save(args, path, form)
    if args.json:
        form = "json"
    if form == "parquet":
        raise EdgeFLError("Parquet cannot be written to stdout", fix="Give a file with --out.")
    sys.stdout.flush()
    with connect(args) as api:
        api.download(path, sys.stdout.buffer, format=form)
    return 0


def run_export(args: argparse.Namespace) -> int:
    """Write the model."""
    form = args.format or ("weights" if Path(args.out).suffix == ".safetensors" else "onnx")
    if args.round is not None and (args.device is not None or args.round < 1):
        fix = "Give --round without --device, and a number that `edgefl fed rounds` shows."
        raise EdgeFLError(f"--round {args.round} names no global model", fix=fix)
    held = form != "weights" and not args.whole
    path, query = model_of(args.name, args.device, args.budget, args.round, held=held)
    return _save(args, path, form, **query)


def _save(args: argparse.Namespace, path: str, form: str, **query: str) -> int:
    """Download to a file that appears complete or not at all."""
    out = Path(args.out)
    try:
        handle, name = tempfile.mkstemp(dir=out.absolute().parent, prefix=f".{out.name}.")
    except OSError as error:
        raise EdgeFLError(f"{out} cannot be written: {error.strerror}", fix="Choose a writable folder.") from None
    try:
        with os.fdopen(handle, "wb") as file, connect(args) as api:
            count = api.download(path, file, format=form, **query)
        Path(name).chmod(0o644)
        Path(name).replace(out)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    part = {name: value for name, value in query.items() if name == "part"}
    if args.json:
        print_json({"file": str(out), "format": form, "bytes": count, **part})
    else:
        held = ", the part that devices hold (--whole: all of it)" if part.get("part") == "held" else ""
        print(f"{out}: {count:,} bytes of {form}{held}")
    return 0
