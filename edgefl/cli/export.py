"""`edgefl export`: a torch model once to a bundle, and a personal submodel of it."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgefl.errors import ExportError, MissingDependencyError

if TYPE_CHECKING:
    from edgefl.artifacts.bundle import Bundle
    from edgefl.artifacts.submodel import Submodel
    from edgefl.masks import Mask
    from export.parity import Parity
    from export.source import Source

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl export --model cnn4 --out exported/cnn4
  edgefl export --model preresnet18 --keep 0.5 --freeze stem,block1 --out exported/half
  edgefl export --model mypackage.models:make_model --input 3,32,32 --out exported/mine

written to the folder of --out:
  manifest.json, model_graph.json, train.onnx, infer.onnx, weights.safetensors   for every device, every mask
  personal/mask.safetensors, train.onnx, infer.onnx, weights.safetensors         with --keep, --mask or --freeze
"""

_STEPS = 5


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "export",
        help="export a model once for every device, and a personal sparse part of it",
        description="Export a torch model to ONNX graphs that train and infer at every width, batch size and freezing\n"
        "mask, and cut a personal submodel out of it. Needs the extra 'export'.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", required=True, metavar="NAME", help="a model of the zoo, or package.module:factory")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder, or a file ending in .zip, to write to")
    parser.add_argument("--classes", type=int, metavar="N", help="classes of a zoo model (default: its paper's)")
    parser.add_argument("--input", metavar="SHAPE", help="shape of one sample of your own model, such as 3,32,32")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the fresh weights (default: 0)")
    parser.add_argument("--keep", type=float, metavar="F", help="keep this fraction of every layer's channels")
    parser.add_argument("--mask", metavar="FILE", help="keep and train what a mask file says")
    parser.add_argument("--freeze", metavar="NAMES", help="freeze these layers or blocks, comma-separated")
    parser.add_argument("--no-check", action="store_true", help="skip the comparison with PyTorch")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Export, check, cut, write, and say what it came to."""
    try:
        from export.bundle import make_bundle
        from export.source import open_source
        from export.zoo import block_of
    except ImportError as error:
        raise MissingDependencyError(error.name or "torch", action="Export", extra="export") from None
    from edgefl.artifacts.bundle import write_bundle

    show = _Progress()
    source = open_source(args.model, classes=args.classes, sample=args.input, seed=args.seed)
    bundle = make_bundle(source.model, source.name, source.example, block_of=block_of, progress=show.step)
    parity = None if args.no_check else _checked(source, bundle, show)
    submodel = _submodel(args, bundle, show)
    show.done()
    out = Path(args.out)
    write_bundle(bundle, out)
    if submodel is not None:
        _write_submodel(submodel, out.parent / f"{out.stem}.personal" if out.suffix == ".zip" else out / "personal")
    _report(bundle, submodel, parity, args.json)
    return 0


class _Progress:
    """A bar on stderr, where stderr is a terminal."""

    def __init__(self) -> None:
        self._count = 0
        self._shown = sys.stderr.isatty()

    def step(self, what: str) -> None:
        """Show the next step."""
        if self._shown:
            bar = "#" * self._count + "." * (_STEPS - self._count)
            print(f"\r[{bar}] {what:<28}", end="", file=sys.stderr, flush=True)
        self._count = min(self._count + 1, _STEPS)

    def done(self) -> None:
        """Clear the bar."""
        if self._shown:
            print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)


def _checked(source: "Source", bundle: "Bundle", show: _Progress) -> "Parity":
    from edgefl.artifacts.bundle import TRAIN
    from export.parity import check_parity

    show.step("comparing with PyTorch")
    parity = check_parity(source.model, bundle.files[TRAIN], source.example)
    if not parity.holds:
        raise ExportError(
            f"the gradient of {parity.worst!r} differs from PyTorch's by {parity.gradient_error:.1e} of its size",
            fix="Report this model; --no-check writes the bundle all the same.",
        )
    return parity


def _submodel(args: argparse.Namespace, bundle: "Bundle", show: _Progress) -> "Submodel | None":
    from edgefl.artifacts.submodel import make_submodel

    if args.keep is None and args.mask is None and args.freeze is None:
        return None
    show.step("personal submodel")
    return make_submodel(bundle, _mask(args, bundle))


def _mask(args: argparse.Namespace, bundle: "Bundle") -> "Mask":
    from edgefl.masks import freeze, full_mask, leading_channels
    from edgefl.wire import decode_mask

    if args.keep is not None and args.mask is not None:
        raise ExportError("--keep and --mask both say what to keep", fix="Give one of them.")
    if args.mask is not None:
        mask = decode_mask(Path(args.mask).read_bytes(), bundle.graph)
    else:
        mask = full_mask(bundle.graph) if args.keep is None else leading_channels(bundle.graph, args.keep)
    names = [name for name in (args.freeze or "").split(",") if name]
    layers = [layer for name in names for layer in bundle.graph.blocks.get(name, (name,))]
    return freeze(mask, layers)


def _write_submodel(submodel: "Submodel", folder: Path) -> None:
    from edgefl.artifacts.bundle import INFER, TRAIN, WEIGHTS
    from edgefl.artifacts.store import write_whole
    from edgefl.wire import encode_mask

    write_whole(folder / "mask.safetensors", encode_mask(submodel.mask))
    write_whole(folder / WEIGHTS, submodel.weights)
    write_whole(folder / TRAIN, submodel.training_graph)
    write_whole(folder / INFER, submodel.inference_model)


def _report(bundle: "Bundle", submodel: "Submodel | None", parity: "Parity | None", as_json: bool) -> None:
    from edgefl.model_graph import cost_of

    dense = cost_of(bundle.graph)
    costs = {"dense": dense} | ({} if submodel is None else {"personal": submodel.mask.cost})
    if as_json:
        told: dict[str, Any] = {
            "model": bundle.manifest.model,
            "graph": bundle.manifest.graph,
            "files": dict(bundle.manifest.files),
            "gradient_error": None if parity is None else parity.gradient_error,
            "costs": {name: {f: getattr(cost, f) for f in cost.__slots__} for name, cost in costs.items()},
        }
        print(json.dumps(told, indent=2))
        return
    print(f"{bundle.manifest.model}: {bundle.manifest.graph}")
    if parity is not None:
        print(f"gradients differ from PyTorch's by at most {parity.gradient_error:.1e} ({parity.worst})")
    rows = {
        "parameters": "parameters",
        "trained parameters": "trained_parameters",
        "weights, bytes": "parameter_bytes",
        "forward multiply-adds": "forward_multiply_adds",
        "backward multiply-adds": "backward_multiply_adds",
        "activations to remember": "saved_activations",
    }
    print(f"{'':<26}" + "".join(f"{name:>16}" for name in costs) + (f"{'share':>9}" if submodel else ""))
    for label, field in rows.items():
        values = [getattr(cost, field) for cost in costs.values()]
        share = f"{values[1] / values[0]:>9.1%}" if submodel and values[0] else ""
        print(f"{label:<26}" + "".join(f"{value:>16,}" for value in values) + share)
