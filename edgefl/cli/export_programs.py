"""`edgefl export --programs`: a ladder of ExecuTorch programs in the bundle, with progress and a table of its rungs."""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgefl.errors import ExportError

if TYPE_CHECKING:
    from edgefl.artifacts.bundle import Bundle
    from edgefl.planning.rungs import Ladder
    from export.executorch.compilation import CompiledPrograms, Progress

__all__ = ["ExportedPrograms", "add_options", "compile_ladder", "print_programs", "programs_json"]

_WIDTH = 20


@dataclass(frozen=True, slots=True, eq=False)
class ExportedPrograms:
    """A ladder and what was compiled of it."""

    ladder: "Ladder"
    compiled: "CompiledPrograms"
    names: Mapping[str, str]
    """The rung of every program that was wanted, by the key of its specification."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the ladder."""
    group = parser.add_argument_group("ExecuTorch programs, for devices that train with ExecuTorch")
    group.add_argument(
        "--programs", action="store_true", help="compile programs for a ladder of widths, cuts and batch sizes"
    )
    group.add_argument(
        "--widths", metavar="LIST", help="fractions of the model's width (default: 1,0.75,0.5,0.375,0.25,0.125)"
    )
    group.add_argument(
        "--cuts", default="all", metavar="NAMES", help="blocks from which on layers are trained (default: all of them)"
    )
    group.add_argument("--batch-sizes", metavar="LIST", help="training batch sizes, such as 32,8 (default: --batch)")
    group.add_argument("--minutes", type=float, metavar="M", help="time limit; programs made so far are kept and used")
    group.add_argument("--jobs", type=int, metavar="N", help="parallel processes (default: one per core)")


def compile_ladder(args: argparse.Namespace, bundle: "Bundle") -> tuple["Bundle", ExportedPrograms | None]:
    """Return the bundle with the requested programs, if any are requested."""
    if not args.programs:
        if args.widths or args.batch_sizes or args.minutes is not None or args.jobs is not None or args.cuts != "all":
            raise ExportError("--widths, --cuts, --batch-sizes, --minutes and --jobs are for --programs", fix="Add it.")
        return bundle, None
    if args.jobs is not None and args.jobs < 1:
        raise ExportError(f"{args.jobs} is not a number of jobs", fix="Give at least 1.")
    from edgefl.artifacts.bundle import INFER, TRAIN, with_programs
    from edgefl.planning.rungs import DEFAULT_WIDTHS, Ladder
    from export.executorch.compilation import ModelArguments, compile_programs
    from export.executorch.ladder import ladder_specs
    from export.losses import Loss

    files = bundle.manifest.files
    widths = _numbers(args.widths, float, "--widths") if args.widths else DEFAULT_WIDTHS
    ladder = Ladder(bundle.graph, files[TRAIN], files[INFER], tuple(widths))
    batches = _numbers(args.batch_sizes, int, "--batch-sizes") if args.batch_sizes else [args.batch]
    cuts = None if args.cuts == "all" else [name.strip() for name in args.cuts.split(",")]
    specs = ladder_specs(ladder, batches, cuts)
    show = _LadderProgress()
    try:
        compiled = compile_programs(
            ModelArguments(target=args.model, classes=args.classes, sample=args.input, seed=args.seed),
            bundle.graph,
            Loss(bundle.manifest.loss),
            specs,
            jobs=args.jobs,
            seconds=None if args.minutes is None else 60 * args.minutes,
            progress=show,
        )
    finally:
        show.done()
    names = {spec.key: ladder.rung_of(spec) for spec in specs}
    return with_programs(bundle, compiled.programs), ExportedPrograms(ladder, compiled, names)


def _numbers(text: str, kind: type[Any], option: str) -> list[Any]:
    try:
        found = list(dict.fromkeys(kind(word) for word in text.split(",")))
    except ValueError:
        found = []
    if not found or min(found) <= 0:
        raise ExportError(
            f"{option} is {text!r}", fix="Give numbers above 0 with commas between them, such as 1,0.5 or 32,8."
        )
    return found


class _LadderProgress:
    """A progress bar with counts and the time left on stderr: redrawn on a terminal, otherwise a line per program."""

    def __init__(self) -> None:
        self._moves = sys.stderr.isatty()

    def __call__(self, state: "Progress") -> None:
        from edgefl.values.formatting import format_seconds

        left = "" if state.seconds_left is None else f", {format_seconds(state.seconds_left)} left"
        text = f"{state.done} of {state.total} programs{left if state.done < state.total else ''}"
        if self._moves:
            done = _WIDTH * state.done // max(state.total, 1)
            text = f"\r\x1b[K[{'#' * done}{'.' * (_WIDTH - done)}] {text}"
        print(text, end="" if self._moves else "\n", file=sys.stderr, flush=True)

    def done(self) -> None:
        """Clear the bar."""
        if self._moves:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def print_programs(found: ExportedPrograms) -> None:
    """Print the rungs, and what is missing."""
    from edgefl.cli.tables import print_table
    from edgefl.values.formatting import format_bytes, format_seconds

    rows = [
        (
            row["rung"],
            format_bytes(row["bytes"]),
            format_bytes(row["peak_bytes"]),
            _made(row["seconds"], format_seconds),
        )
        for row in _rows(found)
    ]
    print()
    print_table(("program", "file", "peak memory", "compiled in"), rows, "no programs")
    for key, reason in found.compiled.failed.items():
        print(f"not compiled: {found.names[key]}: {reason}")
    if found.compiled.left:
        names = ", ".join(found.names[spec.key] for spec in found.compiled.left[:3])
        print(f"the time limit left out {len(found.compiled.left)} programs, such as {names}: run the command again")


def _made(seconds: float | None, say: Any) -> str:
    return "was cached" if seconds is None else str(say(seconds))


def programs_json(found: ExportedPrograms) -> dict[str, Any]:
    """Return what was compiled, for --json."""
    return {
        "compiled": _rows(found),
        "failed": {found.names[key]: reason for key, reason in found.compiled.failed.items()},
        "left_out": [found.names[spec.key] for spec in found.compiled.left],
    }


def _rows(found: ExportedPrograms) -> list[dict[str, Any]]:
    from edgefl.artifacts.bundle import program_file

    return [
        {
            "rung": found.names[program.spec.key],
            "file": program_file(program.spec),
            "bytes": program.size,
            "peak_bytes": program.peak_bytes,
            "seconds": found.compiled.seconds.get(program.spec.key),
        }
        for program in found.compiled.programs
    ]
