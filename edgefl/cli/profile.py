"""`edgefl profile`: measure what training costs this device.

The run function imports the device runtime, which needs an engine; the help text must work without it.
"""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from edgefl.errors import EdgeFLError
from edgefl.pairing import Pairing

if TYPE_CHECKING:
    from device_runtime.profiler import ProfileRequest
    from edgefl.values import DeviceProfile

    Measured = tuple[DeviceProfile, list[str]]
    """A profile, and remarks about how it was measured."""

__all__ = ["add_parser"]

_EPILOG = """\
examples:
  edgefl profile --out pi.json
  edgefl profile --bundle exported/cnn4 --threads 2
  edgefl profile --engine all --out pi.json
  edgefl profile --coordinator https://192.168.1.2:8443 --json

Without --bundle, three built-in models are measured, and predictions for your own model are rougher: export it once
(see `edgefl export`) and pass it here. If the package onnx is installed, frozen layers of a bundle are measured too.
ExecuTorch is measured with the programs of a bundle (`edgefl export --programs`), of the coordinator's own model with
--coordinator, or of the built-in models. Profiles of several engines are written to one file.
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
    parser.add_argument(
        "--engine",
        metavar="NAME,...",
        help="onnx, executorch, several of them, or all that are installed (default: the first installed)",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="engine threads (default: all usable cores)")
    parser.add_argument(
        "--bundle",
        action="append",
        default=[],
        metavar="DIR",
        help="a model to measure, a folder or zip file written by `edgefl export`; repeatable",
    )
    parser.add_argument("--seconds", type=float, metavar="S", help="approximate measuring time (default: 40)")
    parser.add_argument(
        "--coordinator",
        metavar="URL|URI",
        help="also measure the network to this coordinator, and its programs if the engine runs some",
    )
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
    from device_runtime.profiler import DEFAULT_SECONDS, ProfileRequest
    from edgefl.values import dump_profiles

    engines = _engines(args.engine)
    pairing = None if args.coordinator is None else Pairing.at(args.coordinator, insecure=args.insecure)
    order = ProfileRequest(
        engine=engines[0],
        threads=args.threads,
        bundles=tuple(map(Path, args.bundle)),
        seconds=DEFAULT_SECONDS if args.seconds is None else args.seconds,
        coordinator=None if pairing is None else pairing.url,
        key=args.key or (pairing and pairing.key) or os.environ.get("EDGEFL_JOIN_KEY") or None,
        tls=None if pairing is None else pairing.tls(),
        folder=Path("~/.edgefl").expanduser(),  # where `edgefl join` keeps its files
    )
    out = None if args.out is None else _writable(Path(args.out))
    # A program that was downloaded may end its process.
    downloads = "executorch" in engines and order.coordinator is not None and not order.bundles
    measured = _several(order, engines) if downloads or len(engines) > 1 else [_measured(order)]
    profiles = tuple(profile for profile, _ in measured)
    text = dump_profiles(profiles)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    if args.json:
        sys.stdout.write(text)
    for number, (profile, notes) in enumerate(measured):
        if not args.json:
            print("" if number == 0 else "\n", end="")
            _print(profile)
        for note in notes:
            print(note, file=sys.stderr)
    if len(profiles) > 1 and not args.json:
        _print_choice(dict(zip(engines, profiles, strict=True)))
    return 0


def _engines(said: str | None) -> list[str]:
    """Return the engines to measure: those named, all that are installed, or the first of these."""
    from device_runtime.engines import ENGINES, installed_engines

    here = list(installed_engines())
    if said is None:
        return here[:1] or ["onnx"]
    names = here or ["onnx"] if said == "all" else list(dict.fromkeys(name.strip() for name in said.split(",")))
    unknown = [name for name in names if name not in ENGINES]
    if unknown:
        raise EdgeFLError(
            f"there is no engine {unknown[0]!r}", fix=f"Choose one or more of {', '.join(ENGINES)}, or all."
        )
    return names


def _measured(order: "ProfileRequest") -> "Measured":
    from device_runtime.profiler import measure

    bar = _Bar()
    notes: list[str] = []
    try:
        return measure(order, bar.show, notes.append), notes
    finally:
        bar.clear()


def _several(order: "ProfileRequest", engines: list[str]) -> "list[Measured]":
    """Measure engines, each in a process of its own: in one they slow each other down."""
    from device_runtime.profiler.federation_programs import or_built_in, with_programs
    from device_runtime.profiler.network import measure_speed
    from device_runtime.profiler.separate_process import measure_separately

    bar = _Bar()
    found: list[Measured] = []
    try:
        speed = None if order.coordinator is None else measure_speed(order.coordinator, order.key, tls=order.tls)
        for number, engine in enumerate(engines):
            bar.show(engine, number / len(engines))
            remarks: list[str] = []
            own = replace(with_programs(replace(order, engine=engine), remarks.append), coordinator=None, tls=None)
            profile, notes = or_built_in(own, measure_separately, remarks.append)
            if speed is not None:
                profile = replace(
                    profile, download_bytes_per_second=speed.download, upload_bytes_per_second=speed.upload
                )
            found.append((profile, [*remarks, *notes]))
    finally:
        bar.clear()
    return found


def _print_choice(profiles: "dict[str, DeviceProfile]") -> None:
    from device_runtime.profiler.engine_choice import built_in_work, choose_engine

    why = choose_engine(profiles, built_in_work()).why
    print(f"\nOn the built-in models, `edgefl join --engine auto` would say: {why}.")


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
