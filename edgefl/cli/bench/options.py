"""Options shared by the subcommands of `edgefl bench`."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from edgefl.errors import EdgeFLError

if TYPE_CHECKING:
    from edgefl.bench.benchmark_model import BenchmarkModel
    from edgefl.bench.measurements import MeasuringTime

__all__ = ["add_model", "add_output", "add_pace", "numbers", "pace_of", "benchmark_model_of", "words"]


def add_model(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the options that select the model."""
    parser.add_argument(
        "model", nargs="?", metavar="MODEL", help=f"a zoo model, or package.module:factory (default: {default})"
    )
    parser.add_argument("--bundle", metavar="DIR", help="a bundle written by `edgefl export`; needs no torch")
    parser.add_argument(
        "--classes", type=int, metavar="N", help="number of classes of a zoo model (default: as in its paper)"
    )
    parser.add_argument("--input", metavar="SHAPE", help="shape of one sample, such as 3,32,32, if it is not known")
    parser.add_argument("--weights", metavar="FILE", help="weights of a zoo model (default: newly initialised)")


def benchmark_model_of(args: argparse.Namespace, default: str) -> "BenchmarkModel":
    """Open the selected model, or the default."""
    from edgefl.bench.benchmark_model import open_benchmark_model

    model = default if args.model is None and args.bundle is None else args.model
    return open_benchmark_model(model, args.bundle, classes=args.classes, sample=args.input, weights=args.weights)


def add_pace(parser: argparse.ArgumentParser, turns: int) -> None:
    """Add the options that set how long to measure."""
    parser.add_argument(
        "--turns", type=int, default=turns, metavar="N", help=f"measured turns of each (default: {turns})"
    )
    parser.add_argument("--warm-up", type=int, default=3, metavar="N", help="discarded turns before that (default: 3)")
    parser.add_argument("--threads", type=int, metavar="N", help="threads per engine (default: all usable cores)")
    parser.add_argument(
        "--energy-seconds",
        type=float,
        default=0.5,
        metavar="S",
        help="length of each of the three energy measurements, in seconds; 0 for none (default: 0.5)",
    )


def pace_of(args: argparse.Namespace) -> "MeasuringTime":
    """Return the measuring time that the options set."""
    from device_runtime.telemetry import usable_cores
    from edgefl.bench.measurements import MeasuringTime

    threads = usable_cores() if args.threads is None else args.threads
    return MeasuringTime(turns=args.turns, warm_up=args.warm_up, threads=threads, energy_seconds=args.energy_seconds)


def add_output(parser: argparse.ArgumentParser, run: Callable[[argparse.Namespace], int]) -> None:
    """Add the output options, and the function to run."""
    parser.add_argument("--plot", metavar="FILE", help="draw a chart to a .png, .svg or .pdf file")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    parser.set_defaults(run=run)


def words(text: str) -> tuple[str, ...]:
    """Split a comma-separated list."""
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def numbers(text: str, option: str) -> tuple[int, ...]:
    """Parse comma-separated whole numbers."""
    try:
        return tuple(int(word) for word in words(text))
    except ValueError:
        raise EdgeFLError(
            f"{option} is {text!r}", fix="Write whole numbers separated by commas, such as 32,8."
        ) from None
