"""`edgefl predict`: predict with this device's personal model."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from edgefl.cli.join_home import only_home
from edgefl.errors import DataError, EdgeFLError

if TYPE_CHECKING:
    from device_runtime.engines import Predictor, ThreadSettings
    from device_runtime.personal_model import PersonalModel
    from edgefl.data import Dataset
    from edgefl.masks import Array

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl predict --data mine.npz
  edgefl predict --data digits --part test --first 5 --home device2 --json
"""
_AT_ONCE = 64


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = verbs.add_parser(
        "predict",
        help="predict with this device's personal model",
        description="Predict with the personal model that `edgefl join` left on this device. Nothing is sent\n"
        "over the network. Needs the extra 'device'.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", required=True, metavar="NAME|PATH", help="a known data set, or an .npz file")
    parser.add_argument("--folder", metavar="DIR", help="folder of the named data set (default: $EDGEFL_DATA/NAME)")
    parser.add_argument("--part", choices=["train", "test"], default="test", help="which samples (default: test)")
    parser.add_argument("--first", type=int, metavar="N", help="only the first N samples (default: all)")
    parser.add_argument(
        "--home", metavar="DIR", help="folder of the device's files (default: that of its federation, below ~/.edgefl)"
    )
    parser.add_argument(
        "--engine", metavar="NAME", help="onnx or executorch (default: the one that it was trained with)"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="engine threads (default: all usable cores)")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout, with one answer per sample")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Predict, and print the accuracy."""
    import numpy as np

    from device_runtime.engines import ThreadSettings
    from device_runtime.personal_model import load_personal
    from edgefl.data import load
    from edgefl.local_rules import mean_logits

    home = only_home(args)
    model = load_personal(home / "personal")
    dataset = _as_trained(load(args.data, args.folder), home)
    threads = ThreadSettings.default() if args.threads is None else ThreadSettings(args.threads)
    predictor = _predictor(model, args.engine, threads)
    chosen, labels = _chosen(dataset, args.part, args.first)
    answers: list[int] = []
    networks = model.networks
    for start in range(0, len(chosen), _AT_ONCE):
        x, _ = dataset.batch(chosen[start : start + _AT_ONCE], args.part)
        answers += mean_logits(predictor, networks, x).argmax(axis=1).tolist()
    right = float(np.mean(np.array(answers) == labels))
    names = dataset.class_names
    if args.json:
        print(json.dumps({"round": model.round, "answers": answers, "right": right}))
        return 0
    for index, answer in list(zip(chosen, answers, strict=True))[:10]:
        print(f"sample {index}: {answer if names is None else names[answer]}")
    if len(answers) > 10:
        print(f"... and {len(answers) - 10:,} more")
    share = model.mask.cost.parameters / model.mask.graph.parameters
    said = f"{right:.1%} of {len(answers):,} right"
    which = "after personalisation" if model.is_personal else f"of round {model.round + 1}"
    print(f"{said}, by a model {which} with {share:.1%} of the parameters")
    return 0


def _predictor(model: "PersonalModel", engine: str | None, threads: "ThreadSettings") -> "Predictor":
    """Load the model with the engine that it was stored for."""
    from device_runtime.engines import ENGINES, open_engine
    from device_runtime.engines.program_check import check_inference_program

    if engine in ENGINES and engine != model.format:
        raise EdgeFLError(
            f"the model is stored for the engine {model.format.value!r}, and {engine!r} cannot run it",
            fix=f"Give --engine {model.format.value}, or train a task with the other engine first.",
        )
    if model.program is not None:
        check_inference_program(model.program, model.mask)
    return open_engine(engine or model.format, threads).predictor(model.inference, program=model.program)


def _as_trained(dataset: "Dataset", home: Path) -> "Dataset":
    """Return data with the normalisation that the device trained with."""
    from edgefl.data import fitting
    from edgefl.values import SampleSpec, loads

    path = home / "sample.json"
    return fitting(dataset, loads(SampleSpec, path.read_bytes(), tolerant=True)) if path.exists() else dataset


def _chosen(dataset: "Dataset", part: str, first: int | None) -> tuple[list[int], "Array"]:
    samples = dataset.test if part == "test" else dataset.train
    count = len(samples) if first is None else min(first, len(samples))
    if first is not None and first < 1:
        raise DataError(f"--first is {first}", fix="Give a number of at least 1.")
    if count < 1:
        raise DataError(f"{dataset.name!r} has no {part} samples", fix="Try --part train, or other data.")
    return list(range(count)), samples.labels[:count]
