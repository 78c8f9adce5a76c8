"""`edgefl profile`: measure what training costs this device.

The run function imports the device runtime, which needs an engine; the help text must work without it.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from edgefl.errors import EdgeFLError
from edgefl.pairing import Pairing

if TYPE_CHECKING:
    from edgefl.values import DeviceProfile

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl profile --out pi.json
  edgefl profile --bundle exported/cnn4 --threads 2
  edgefl profile --coordinator https://192.168.1.2:8443 --json

Without --bundle, three built-in models are measured, and predictions for your own model are rougher: export it once
(see `edgefl export`) and pass it here. If the package onnx is installed, frozen layers of a bundle are measured too.
The error of predictions is estimated by cross-validation: one mask, or one built-in model, is left out of the fit at a
time.
"""
_WIDTH = 30


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = verbs.add_parser(
        "profile",
        help="measure what training costs this device",
        description="Measure this device in less than a minute: training steps at several widths, cuts and batch\n"
        "sizes, memory, power, temperature, and the network to a coordinator. Needs the extra 'device'.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--engine", metavar="NAME", help="onnx or executorch (default: the first installed)")
    parser.add_argument("--threads", type=int, metavar="N", help="engine threads (default: all usable cores)")
    parser.add_argument(
        "--bundle",
        action="append",
        default=[],
        metavar="DIR",
        help="a model to measure, a folder or zip file written by `edgefl export`; repeatable",
    )
    parser.add_argument("--seconds", type=float, metavar="S", help="approximate measuring time (default: 40)")
    parser.add_argument("--coordinator", metavar="URL|URI", help="also measure the network to this coordinator")
    parser.add_argument(
        "--key", metavar="KEY", help="join key of the coordinator (default: in its pairing URI, or $EDGEFL_JOIN_KEY)"
    )
    parser.add_argument(
        "--insecure",
        action="store_true",
        help="allow http:// to another machine: everybody on the way can read the key",
    )
    parser.add_argument("--out", metavar="FILE", help="write the profile to this file, as JSON")
    parser.add_argument("--json", action="store_true", help="print JSON on stdout")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, then write and print the profile."""
    from device_runtime.profiler import DEFAULT_SECONDS, ProfileRequest, measure
    from edgefl.values import dumps

    pairing = None if args.coordinator is None else Pairing.at(args.coordinator, insecure=args.insecure)
    order = ProfileRequest(
        engine=args.engine,
        threads=args.threads,
        bundles=tuple(map(Path, args.bundle)),
        seconds=DEFAULT_SECONDS if args.seconds is None else args.seconds,
        coordinator=None if pairing is None else pairing.url,
        key=args.key or (pairing and pairing.key) or os.environ.get("EDGEFL_JOIN_KEY") or None,
        tls=None if pairing is None else pairing.tls(),
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
    """Check that the file can be written before measuring for a minute."""
    if out.is_dir() or not os.access(out if out.exists() else out.absolute().parent, os.W_OK):
        raise EdgeFLError(f"{out} cannot be written", fix="Choose a file in an existing, writable folder.")
    return out


class _Bar:
    """A progress bar on stderr, if that is a terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def show(self, what: str, share: float) -> None:
        """Show the current step and the progress."""
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
