"""`edgefl export`: export a torch model to a bundle, and a personal submodel of it in the requested formats.

The run function imports `export`, which needs torch; the help text must work without it.
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from edgefl.cli import export_programs
from edgefl.cli.export_federation import add_options
from edgefl.cli.export_federation import run as run_federation
from edgefl.errors import ExportError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgefl.artifacts.bundle import Bundle
    from edgefl.data import Dataset
    from edgefl.masks import Array, Mask
    from export.model_source import ModelSource
    from export.parity import Parity
    from export.personal_files import PersonalExport

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl export --model cnn4 --out exported/cnn4
  edgefl export --model preresnet18 --keep 0.5 --freeze stem,block1 --out exported/half
  edgefl export --model vgg16 --profile pi.json --step-seconds 2 --out exported/for-my-pi
  edgefl export --model cnn4 --keep 0.5 --format onnx,executorch --int8 --data fashion-mnist --out exported/small
  edgefl export --model mypackage.models:make_model --input 3,32,32 --out exported/mine
  edgefl export --model cnn4 --widen 2.5 --out exported/wide
  edgefl export --model cnn4 --programs --widths 1,0.5 --minutes 10 --out exported/cnn4
  edgefl export --federation digits --device pi-4 --out exported/of-my-pi
  edgefl export --federation digits --budget 0.07 --out exported/small

files in the folder --out:
  manifest.json, model_graph.json, train.onnx, infer.onnx, weights.safetensors, sample.json   for every device and mask
with --programs also train.*.pte, infer.*.pte
with --federation: infer.onnx, weights.safetensors, mask.safetensors
and in its subfolder personal, if a submodel or a format is requested:
  mask.safetensors
  train.onnx, weights.safetensors, train.pte, train.json     for training with onnxruntime or ExecuTorch
  infer.onnx, infer.pte, infer.int8.onnx, infer.int8.pte     for inference: weights included, channels removed
"""

CALIBRATION_SAMPLES = 256
TEST_SAMPLES = 1000


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = verbs.add_parser(
        "export",
        help="export a model for all devices, and a personal sparse submodel",
        description="Export a torch model to ONNX graphs for training and inference at any width, batch size and\n"
        "freezing mask, and cut a personal submodel out of it. Needs the extras 'export' and 'device'.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", metavar="NAME", help="a zoo model, or package.module:factory")
    parser.add_argument("--out", required=True, metavar="DIR", help="output folder, or a file name ending in .zip")
    parser.add_argument(
        "--classes", type=int, metavar="N", help="number of classes of a zoo model (default: as in its paper)"
    )
    parser.add_argument("--input", metavar="SHAPE", help="shape of one sample of your own model, such as 3,32,32")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the initial weights (default: 0)")
    parser.add_argument(
        "--widen",
        type=float,
        metavar="F",
        help="write the bundle of a model this many times as wide, with room for networks side by side",
    )
    parser.add_argument(
        "--masked-loss",
        action="store_true",
        help="leave classes without local samples out of a device's loss (HeteroFL)",
    )
    parser.add_argument("--weights", metavar="FILE", help="initial weights, a weights.safetensors written by EdgeFL")
    _add_part(parser.add_argument_group("the personal submodel"))
    _add_formats(parser.add_argument_group("output formats"))
    export_programs.add_options(parser)
    add_options(parser)
    parser.add_argument("--no-check", action="store_true", help="skip the comparison of gradients with PyTorch")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    parser.set_defaults(run=run)


def _add_part(group: "argparse._ArgumentGroup") -> None:
    choice = group.add_mutually_exclusive_group()
    choice.add_argument("--keep", type=float, metavar="F", help="keep this fraction of every layer's channels")
    choice.add_argument("--mask", metavar="FILE", help="use this mask file")
    choice.add_argument(
        "--profile", metavar="FILE", help="keep what this device can afford to train (see `edgefl profile`)"
    )
    group.add_argument(
        "--step-seconds",
        type=float,
        default=1.0,
        metavar="S",
        help="with --profile: time limit of a training step (default: 1.0); memory is limited to half of what is free",
    )
    group.add_argument("--batch", type=int, default=32, metavar="N", help="training batch size (default: 32)")
    group.add_argument("--freeze", metavar="NAMES", help="freeze these layers or blocks, comma-separated")


def _add_formats(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("--format", default="onnx", metavar="LIST", help="onnx, executorch or both (default: onnx)")
    group.add_argument("--train", action="store_true", help="write only the training files")
    group.add_argument("--infer", action="store_true", help="write only the inference files")
    group.add_argument("--int8", action="store_true", help="also write 8-bit inference models; needs --data")
    group.add_argument(
        "--data",
        metavar="NAME|PATH",
        help="data that the model is for: describes samples in sample.json, calibrates and evaluates 8-bit models",
    )


def run(args: argparse.Namespace) -> int:
    """Export, check, cut, write, and print a summary."""
    if (args.model is None) == (args.federation is None):
        raise ExportError("nothing to export", fix="Give either --model or --federation.")
    if args.federation is not None and args.programs:
        raise ExportError(
            "--programs is for --model", fix="Compile the programs of a federation with `edgefl compile`."
        )
    if args.federation is not None:
        return run_federation(args)
    if args.device is not None or args.budget is not None:
        raise ExportError("--device and --budget need a federation", fix="Name it with --federation.")
    try:
        from export.bundle import make_bundle
        from export.losses import Loss
        from export.model_source import open_source
        from export.personal_files import make_files
        from export.zoo import block_of
    except ImportError as error:
        raise MissingDependencyError(error.name or "torch", action="Export", extra="export") from None
    from edgefl.artifacts.bundle import write_bundle
    from edgefl.cli.export_report import report

    data = _data(args)
    source = open_source(args.model, classes=args.classes, sample=args.input, seed=args.seed, weights=args.weights)
    order = _order(args, source, data)
    show = _Progress(steps=4 + (not args.no_check) + 3 * ("executorch" in order.formats))
    loss = Loss.MASKED_CROSS_ENTROPY if args.masked_loss else Loss.CROSS_ENTROPY
    bundle = make_bundle(source.model, source.name, source.example, loss=loss, block_of=block_of, progress=show.step)
    bundle = _described(bundle, data)
    parity = None if args.no_check else _checked(source, bundle, show)
    mask = _mask(args, bundle)
    files = {} if mask is None else make_files(source, bundle, mask, order, show.step)
    accuracy = {} if data is None or not (files and args.int8) else _accuracies(files, data)
    show.done()
    bundle = _widened(args, bundle, files)
    bundle, programs = export_programs.compile_ladder(args, bundle)
    out = Path(args.out)
    write_bundle(bundle, out)
    _write(files, out.parent / f"{out.stem}.personal" if out.suffix == ".zip" else out / "personal")
    report(bundle, mask, files, parity, accuracy, programs, as_json=args.json)
    return 0


def _widened(args: argparse.Namespace, bundle: "Bundle", files: "Mapping[str, bytes]") -> "Bundle":
    from edgefl.artifacts.widen import widen

    if args.widen is None:
        return bundle
    if files or args.programs:
        raise ExportError(
            "--widen is for a bundle alone, without a submodel or programs",
            fix="Leave out the options for these, or --widen.",
        )
    return widen(bundle, args.widen, seed=args.seed)


class _Progress:
    """A progress bar on stderr, if that is a terminal."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._count = 0
        self._shown = sys.stderr.isatty()

    def step(self, what: str) -> None:
        """Show the next step."""
        if self._shown:
            bar = "#" * self._count + "." * (self._steps - self._count)
            print(f"\r[{bar}] {what:<32}", end="", file=sys.stderr, flush=True)
        self._count = min(self._count + 1, self._steps)

    def done(self) -> None:
        """Clear the bar."""
        if self._shown:
            print("\r" + " " * (self._steps + 36) + "\r", end="", file=sys.stderr, flush=True)


def _data(args: argparse.Namespace) -> "Dataset | None":
    from edgefl.data import load

    if args.int8 and not args.data:
        raise ExportError(
            "--int8 needs samples to calibrate activations",
            fix="Give a data set, such as --data fashion-mnist, or --data mine.npz.",
        )
    return load(args.data) if args.data else None


def _order(args: argparse.Namespace, source: "ModelSource", data: "Dataset | None") -> "PersonalExport":
    from export.personal_files import FORMATS, PersonalExport

    formats = tuple(dict.fromkeys(word.strip() for word in args.format.split(",") if word.strip()))
    unknown = [word for word in formats if word not in FORMATS]
    if unknown or not formats:
        raise ExportError(f"unknown format {args.format!r}", fix=f"Give {' or '.join(FORMATS)}, or both.")
    if args.batch < 1:
        raise ExportError(f"the batch size is {args.batch}", fix="Give a number of at least 1.")
    if args.int8 and args.train and not args.infer:
        raise ExportError("--int8 needs inference files, which --train leaves out", fix="Drop one of the two options.")
    both = args.train == args.infer
    calibration = None if data is None or not args.int8 else _calibration(data, tuple(source.example.shape[1:]))
    return PersonalExport(
        formats, train=args.train or both, infer=args.infer or both, batch=args.batch, calibration=calibration
    )


def _calibration(data: "Dataset", shape: tuple[int, ...]) -> "Array":
    """Return samples spread evenly over the training data."""
    data.check_shape(shape)
    return data.evenly(CALIBRATION_SAMPLES)[0]


def _described(bundle: "Bundle", data: "Dataset | None") -> "Bundle":
    """Return a bundle that says what a sample is: what the model knows, and with data all of it."""
    from edgefl.artifacts.bundle import with_sample
    from edgefl.data import described_by

    if data is None:
        return with_sample(bundle, bundle.sample)
    data.check_shape(tuple(bundle.manifest.input_shape))
    if data.classes > bundle.manifest.outputs:
        raise ExportError(
            f"{data.name!r} has {data.classes} classes, but the model has {bundle.manifest.outputs} outputs",
            fix="Give the data that the model is for, or a model with as many outputs (--classes).",
        )
    return with_sample(bundle, described_by(data, bundle.sample))


def _checked(source: "ModelSource", bundle: "Bundle", show: _Progress) -> "Parity":
    from edgefl.artifacts.bundle import TRAIN
    from export.parity import check_parity

    show.step("comparing with PyTorch")
    parity = check_parity(source.model, bundle.files[TRAIN], source.example)
    if not parity.holds:
        raise ExportError(
            f"the gradient of {parity.worst!r} has a relative error of {parity.gradient_error:.1e} to PyTorch's",
            fix="Please report this model; --no-check writes the bundle anyway.",
        )
    return parity


def _mask(args: argparse.Namespace, bundle: "Bundle") -> "Mask | None":
    """Return the requested mask, or None if no submodel was requested."""
    from edgefl.masks import freeze, full_mask, leading_channels
    from edgefl.wire import decode_mask

    names = [name for name in (args.freeze or "").split(",") if name]
    frozen = [layer for name in names for layer in bundle.graph.blocks.get(name, (name,))]
    if args.mask is not None:
        return freeze(decode_mask(_read(args.mask), bundle.graph), frozen)
    if args.profile is not None:
        return _fitting(args, bundle, frozen)
    if args.keep is not None:
        return freeze(leading_channels(bundle.graph, args.keep), frozen)
    wanted = frozen or args.train or args.infer or args.int8 or args.format != "onnx"
    return freeze(full_mask(bundle.graph), frozen) if wanted else None


def _fitting(args: argparse.Namespace, bundle: "Bundle", frozen: list[str]) -> "Mask":
    from edgefl.masks import freeze, full_mask
    from edgefl.model_graph import Cost
    from edgefl.planning import predict, widest
    from edgefl.values import Budget, read_profiles

    profile = read_profiles(_read(args.profile))[0]
    limits = Budget(round_seconds=args.step_seconds, peak_bytes=profile.memory_free_bytes // 2)
    trained = freeze(full_mask(bundle.graph), frozen).trained

    def fits(cost: Cost) -> bool:
        return not limits.exceeded_by(predict(profile, cost, batch=args.batch))

    return widest(bundle.graph, fits, trained=trained)


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ExportError(f"{path} cannot be read: {error.strerror}", fix="Give the path of a file.") from None


def _accuracies(files: dict[str, bytes], data: "Dataset") -> dict[str, object]:
    """Compare the 8-bit models with the float32 ones on samples spread evenly over the test data."""
    from export.quantisation_accuracy import compare

    x, y = data.evenly(TEST_SAMPLES, "test" if len(data.test) else "train")
    endings = [name.rpartition(".")[2] for name in files if name.startswith("infer.int8.")]
    return {ending: compare(files, ending, x, y) for ending in endings}


def _write(files: dict[str, bytes], folder: Path) -> None:
    from edgefl.artifacts.artifact_store import write_atomically

    for name, content in files.items():
        write_atomically(folder / name, content)
