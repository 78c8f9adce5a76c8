"""`edgefl export --federation`: download a model of a federation from its coordinator. Needs no torch.

It downloads the inference graph, weights and mask of a device's submodel, of the best submodel of a given size, or of
the whole model. A round may end between the downloads, so the weights, which name their mask, are fetched first and
last. If they differ, everything is fetched again.
"""

import argparse
import io
from collections.abc import Callable
from pathlib import Path

from edgefl.cli.fed.api import Api, add_coordinator, connect, model_of
from edgefl.cli.tables import print_json
from edgefl.errors import ExportError

__all__ = ["add_options", "fetched", "run"]

_WEIGHTS = "weights.safetensors"
_FILES = {_WEIGHTS: "weights", "infer.onnx": "onnx", "mask.safetensors": "mask"}
_TRIES = 5


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this variant."""
    group = parser.add_argument_group("from a federation, instead of --model")
    group.add_argument("--federation", metavar="NAME", help="export the latest model of this federation")
    part = group.add_mutually_exclusive_group()
    part.add_argument("--device", metavar="ID", help="the submodel of this device (see `edgefl fed devices`)")
    part.add_argument(
        "--budget", type=float, metavar="F", help="the best submodel with this fraction of the parameters"
    )
    part.add_argument(
        "--whole", action="store_true", help="also the channels that no device holds (default: without them)"
    )
    add_coordinator(parser)


def run(args: argparse.Namespace) -> int:
    """Download the files, write them, and print a summary."""
    from edgefl.artifacts.artifact_store import write_atomically
    from edgefl.wire import BodyKind, decode

    if args.budget is not None and not 0 < args.budget <= 1:
        raise ExportError(f"the budget is {args.budget}", fix="Give a fraction of the parameters, such as 0.07.")
    path, query = model_of(args.federation, args.device, args.budget, held=not args.whole)
    with connect(args) as api:
        files = fetched(lambda form: _download(api, path, query | {"format": form}))
    for name, content in files.items():
        write_atomically(Path(args.out) / name, content)
    weights = decode(files[_WEIGHTS], kind=BodyKind.WEIGHTS)
    parameters = sum(array.size for array in weights.arrays.values())
    if args.json:
        sizes = {name: len(content) for name, content in files.items()}
        print_json(
            {"federation": args.federation, "mask": weights.about["mask"], "entries": parameters, "files": sizes}
        )
        return 0
    print(f"{args.out}: {parameters:,} weights")
    for name, content in files.items():
        print(f"  {name:<22}{len(content):>14,} bytes")
    return 0


def fetched(fetch: Callable[[str], bytes]) -> dict[str, bytes]:
    """Return files that all belong to the same model."""
    for _ in range(_TRIES):
        files = {name: fetch(form) for name, form in _FILES.items()}
        if fetch(_FILES[_WEIGHTS]) == files[_WEIGHTS]:
            return files
    raise ExportError(
        f"the model changed during each of {_TRIES} downloads",
        fix="Try again, or pause the federation first: edgefl fed pause NAME.",
    )


def _download(api: Api, path: str, query: dict[str, str]) -> bytes:
    out = io.BytesIO()
    api.download(path, out, **query)
    return out.getvalue()
