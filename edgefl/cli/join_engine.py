"""Which engine `edgefl join` uses, and the profile of this device with it.

A profile belongs to one engine. Those that were measured are stored together in `profile.json`, and one of another
engine is never used instead.
"""

import argparse
import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from edgefl.errors import EdgeFLError

if TYPE_CHECKING:
    from device_runtime.agent.client import CoordinatorClient
    from device_runtime.profiler.engine_choice import StepWork
    from device_runtime.profiler.federation_programs import FederationPrograms
    from edgefl.values import DeviceProfile

    Programs = Callable[[], FederationPrograms]
    """Downloads the programs of a federation."""

__all__ = ["AUTO", "federation_work", "own_engine"]

AUTO = "auto"
_FILE = "profile.json"
_WORK = (
    "forward_multiply_adds",
    "backward_multiply_adds",
    "activation_bytes",
    "parameter_bytes",
    "trained_parameters",
)

Say = Callable[[str], None]


def own_engine(
    args: argparse.Namespace,
    folder: Path,
    work: "Callable[[], list[StepWork]]",
    say: Say,
    programs: "Programs | None" = None,
) -> "tuple[str, DeviceProfile]":
    """Return the engine to use and this device's profile with it: given, stored, or measured now.

    `work` returns the steps by which engines are compared if the choice is left to the device. `programs` downloads
    those of the federation, for an engine that is measured with programs.
    """
    from device_runtime.engines import ENGINES, installed_engines
    from device_runtime.profiler.engine_choice import choose_engine

    here = installed_engines()
    if args.engine not in (None, AUTO, *ENGINES):
        raise EdgeFLError(f"there is no engine {args.engine!r}", fix=f"Choose one of {', '.join((*ENGINES, AUTO))}.")
    wanted = here or ("onnx",) if args.engine == AUTO else (args.engine or (here[0] if here else "onnx"),)
    if args.profile:
        known = _read(Path(args.profile), wanted)
        if not known:
            raise EdgeFLError(
                f"{args.profile} has no profile of the engine {' or '.join(wanted)}",
                fix=f"Measure one with `edgefl profile --engine {wanted[0]} --out FILE`, or leave --profile out.",
            )
    else:
        known = _measured(args, folder, wanted, say, programs)
    if args.engine != AUTO:
        return wanted[0], known[wanted[0]]
    choice = choose_engine(known, work())
    say(choice.why)
    return choice.engine, known[choice.engine]


def federation_work(client: "CoordinatorClient", secret: str | None) -> "list[StepWork]":
    """Return the largest step that the coordinator lets devices measure, or those of the built-in models."""
    from device_runtime.agent.client import UnknownDeviceError
    from device_runtime.agent.transport import UnreachableError
    from device_runtime.profiler.engine_choice import built_in_work

    with contextlib.suppress(UnreachableError, UnknownDeviceError):
        measurement = client.measurement(secret)
        if measurement is not None and measurement.cases:
            return [{name: getattr(measurement.cases[-1], name) for name in _WORK}]
    return built_in_work()


def _measured(
    args: argparse.Namespace, folder: Path, wanted: tuple[str, ...], say: Say, programs: "Programs | None"
) -> "dict[str, DeviceProfile]":
    """Return the profiles of these engines; those that are not stored are measured, and stored with the others.

    Of several engines, one that cannot be measured is left out.
    """
    from device_runtime.engines import ENGINES
    from device_runtime.profiler import ProfileRequest, measure
    from device_runtime.profiler.federation_programs import downloaded, or_built_in
    from device_runtime.profiler.separate_process import measure_separately
    from edgefl.artifacts.artifact_store import PRIVATE, write_atomically
    from edgefl.values import dump_profiles

    stored = folder / _FILE
    known = _read(stored, tuple(ENGINES)) if stored.exists() else {}
    missing = [engine for engine in wanted if engine not in known]
    for engine in missing:
        say(f"measuring this device with {ENGINES[engine][0]}; this takes less than a minute")
        request = ProfileRequest(engine=engine, threads=args.threads, folder=folder)
        if engine == "executorch" and programs is not None:
            request = replace(request, programs=downloaded(programs, say))
        in_own_process = wanted != ("onnx",)
        try:
            known[engine] = or_built_in(request, measure_separately, say)[0] if in_own_process else measure(request)
        except EdgeFLError as error:
            if engine == wanted[-1] and not any(other in known for other in wanted):
                raise
            say(f"{ENGINES[engine][0]} cannot be measured: {error.problem}")
    if any(engine in known for engine in missing):
        kept = {id(profile): profile for name, profile in known.items() if name in ENGINES}
        write_atomically(stored, dump_profiles(tuple(kept.values())).encode(), mode=PRIVATE)
    return {engine: known[engine] for engine in wanted if engine in known}


def _read(path: Path, wanted: tuple[str, ...]) -> "dict[str, DeviceProfile]":
    """Return the profiles of these engines in a file. One of an engine that EdgeFL does not know counts for any."""
    from device_runtime.engines import ENGINES
    from edgefl.values import engine_package, read_profiles

    try:
        profiles = read_profiles(path.read_bytes())
    except OSError as error:
        raise EdgeFLError(
            f"{path} cannot be read: {error.strerror}", fix="Give a file written by `edgefl profile --out`."
        ) from None
    packages = {package for package, _, _ in ENGINES.values()}
    found: dict[str, DeviceProfile] = {}
    for engine in wanted:
        for profile in profiles:
            if engine_package(profile) == ENGINES[engine][0] or engine_package(profile) not in packages:
                found.setdefault(engine, profile)
    return found
