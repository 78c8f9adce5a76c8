"""`edgefl profile`: measure this device, and say what training costs it.

The device runtime is imported by the run function: it needs an engine, and the help text must not.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from edgefl.errors import EdgeFLError

if TYPE_CHECKING:
    from edgefl.values import DeviceProfile

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl profile --out pi.json
  edgefl profile --bundle exported/cnn4 --threads 2
  edgefl profile --coordinator http://192.168.1.2:8000 --key JOIN_KEY --json

Without --bundle, three built-in models are measured, and predictions for your own are rougher: export it once (see
`edgefl export`) and give it here. With the package onnx installed, frozen layers of a bundle are measured too. How sure
predictions are is judged by what was left out of the fit: one mask after the other, or one built-in model after the
other.
"""
_WIDTH = 30


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "profile",
        help="measure what training costs this device",
        description="Measure this device in under a minute: training steps at several widths, cuts and batch sizes,\n"
        "memory, power, heat, and the way to a coordinator. Needs the extra 'device'.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--engine", metavar="NAME", help="onnx or executorch (default: the first that is installed)")
    parser.add_argument("--threads", type=int, metavar="N", help="threads of the engine (default: all usable cores)")
    parser.add_argument(
        "--bundle",
        action="append",
        default=[],
        metavar="DIR",
        help="a model to measure with, as `edgefl export` wrote it to a folder or zip file; may be given several times",
    )
    parser.add_argument("--seconds", type=float, metavar="S", help="how long to measure, about (default: 40)")
    parser.add_argument("--coordinator", metavar="URL", help="also measure the way to this coordinator")
    parser.add_argument("--key", metavar="KEY", help="join key or token for the coordinator")
    parser.add_argument("--out", metavar="FILE", help="write the profile to this file, as JSON")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, write and print."""
    from device_runtime.profiler import DEFAULT_SECONDS, ProfileRequest, measure
    from edgefl.values import dumps

    order = ProfileRequest(
        engine=args.engine,
        threads=args.threads,
        bundles=tuple(map(Path, args.bundle)),
        seconds=DEFAULT_SECONDS if args.seconds is None else args.seconds,
        coordinator=args.coordinator,
        key=args.key,
        folder=Path("~/.edgefl").expanduser(),  # where `edgefl join` keeps its files
    )
    out = None if args.out is None else _writable(Path(args.out))
    bar = _Bar()
    notes: list[str] = []
    try:
        profile = measure(order, bar.show, notes.append)
    finally:
        bar.clear()
    text = dumps(profile, indent=2) + "\n"
    if out is not None:
        out.write_text(text, encoding="utf-8")
    if args.json:
        sys.stdout.write(text)
    else:
        _print(profile)
    for note in notes:
        print(note, file=sys.stderr)
    return 0


def _writable(out: Path) -> Path:
    """Refuse a path that cannot be written before a minute is spent, not after."""
    if out.is_dir() or not os.access(out if out.exists() else out.absolute().parent, os.W_OK):
        raise EdgeFLError(
            f"{out} cannot be written", fix="Give a file in a folder that exists and that you may write to."
        )
    return out


class _Bar:
    """A bar on stderr, where stderr is a terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def show(self, what: str, share: float) -> None:
        """Show what is done now, and how much is done."""
        if self._shown:
            done = round(_WIDTH * min(1.0, share))
            print(f"\r[{'#' * done:.<{_WIDTH}}] {what:<20}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Remove the bar."""
        if self._shown:
            print("\r" + " " * (_WIDTH + 23) + "\r", end="", file=sys.stderr, flush=True)


def _print(profile: "DeviceProfile") -> None:
    from edgefl.values import describe
    from edgefl.values.formatting import format_error_bound, printable

    rows = [(printable(label), printable(text)) for label, text in describe(profile)]
    width = max(len(label) for label, _ in rows)
    for label, text in rows:
        print(f"  {label:<{width}}  {text}")
    cost = profile.cost
    sure = f"Predicted step times are typically within {format_error_bound(cost.relative_error)} of measured ones"
    if cost.memory_relative_error is not None:
        sure += f", memory peaks within {format_error_bound(cost.memory_relative_error)}"
    print(f"\n{sure}.")
