"""Measures this device: one call that returns a `DeviceProfile`.

`edgefl profile` calls it. In order, it measures the device at rest, the time of steps (with power and heat), memory in
separate processes, and the network, and then fits the cost.
"""

import datetime
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from device_runtime.engines import Engine, ThreadSettings, open_engine
from device_runtime.profiler.case_selection import cases_of, fitting_batch, programs_of
from device_runtime.profiler.cases import Case, work_of
from device_runtime.profiler.cost_fit import FEWEST_GROUPS, CostSample, fit_cost
from device_runtime.profiler.executorch_cases import program_cases
from device_runtime.profiler.federation_programs import FederationPrograms
from device_runtime.profiler.memory import MemoryPeaks, peaks_of
from device_runtime.profiler.network import Speed, measure_speed
from device_runtime.profiler.reference_models import reference_bundles
from device_runtime.profiler.step_timing import TimingResult, time_cases
from device_runtime.telemetry import (
    MemorySize,
    ThermalWatch,
    choose_energy_source,
    device_name,
    free_storage,
    idle_watts,
    machine,
    memory_size,
    power_source,
    usable_cores,
)
from device_runtime.telemetry.clock import now
from edgefl.artifacts.bundle import Bundle, read_bundle
from edgefl.errors import EdgeFLError
from edgefl.values import DeviceProfile, GraphFormat, PowerSource, Provenance, timestamp_of

__all__ = ["DEFAULT_SECONDS", "ProfileRequest", "measure"]

DEFAULT_SECONDS = 40.0
SHORTEST_SECONDS = 3.0
_IDLE, _TIMING, _MEMORY = 0.05, 0.6, 0.3
"""Shares of the time: at rest, loading and timing, memory."""
_LEAST_TIMING = 0.3
"""The share that remains for timing even if loading took its share."""
_LONGEST_STEP = 0.025
"""The longest step to measure, as a share of the time."""
_MEMORY_SHARE = 4
"""A case may take one part in this many of the free memory: several are loaded at the same time."""

Progress = Callable[[str, float], None]
"""Called with the current activity and the share of the work that is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRequest:
    """The request for a profile."""

    engine: str | None = None
    """The engine's name; None means the first that is installed."""
    threads: int | None = None
    """None means all the cores that the process may use."""
    bundles: Sequence[Path] = ()
    """Bundles that `edgefl export` wrote; empty means the built-in models."""
    programs: FederationPrograms | None = None
    """A coordinator's programs, for an engine that runs some and if there are no bundles."""
    seconds: float = DEFAULT_SECONDS
    coordinator: str | None = None
    """The address of a coordinator, to measure the network to it."""
    key: str | None = None
    tls: ssl.SSLContext | None = None
    """Whom to trust there; None means the known authorities."""
    folder: Path = Path()
    """Where EdgeFL will keep its files."""


def measure(
    request: ProfileRequest,
    progress: Progress = lambda what, share: None,
    note: Callable[[str], None] = lambda text: None,
) -> DeviceProfile:
    """Measure this device. `note` is called with remarks for the user about how the profile was measured."""
    if not request.seconds >= SHORTEST_SECONDS or (request.threads is not None and request.threads < 1):
        raise EdgeFLError(
            f"{request.seconds:g} seconds on {request.threads or 'all'} threads are too few to measure",
            fix=f"Give at least {SHORTEST_SECONDS:g} seconds and 1 thread.",
        )
    free = _memory()
    threads = ThreadSettings(request.threads or usable_cores())
    engine = open_engine(request.engine, threads)
    speed = None if request.coordinator is None else _speed(request, request.coordinator, progress)
    began, thermal = now(), ThermalWatch()
    progress("models", 0.02)
    cases = _cases(request, engine, limit=free.available_bytes // _MEMORY_SHARE)
    loading = now() - began
    timing, power = _times(engine, cases, request.seconds, loading, progress)
    peaks = _peaks(request, engine, threads, list(timing.seconds), progress)
    heat = thermal.stop()
    progress("fit", 1.0)
    own = bool(request.bundles) or (_is_executorch(engine) and request.programs is not None)
    built_in, models = not own, {case.program.model for case in timing.seconds}
    for text in _notes(cases, timing, peaks, built_in=built_in):
        note(text)
    return DeviceProfile(
        device_name=device_name(),
        machine=machine(),
        engine=engine.name,
        threads=threads.count,
        cost=fit_cost(
            _measured(timing.seconds, by_model=built_in and len(models) >= FEWEST_GROUPS),
            _measured({case: float(memory.peak_bytes) for case, memory in peaks.of.items()}, by_model=False),
            measured_on=_models(list(timing.seconds), built_in=built_in),
        ),
        memory_total_bytes=free.total_bytes,
        memory_free_bytes=free.available_bytes,
        storage_free_bytes=free_storage(request.folder),
        measured_at=timestamp_of(datetime.datetime.now(datetime.UTC)),
        download_bytes_per_second=None if speed is None else speed.download,
        upload_bytes_per_second=None if speed is None else speed.upload,
        power=power,
        temperature_celsius=None if heat is None else heat.end_celsius,
        throttled=None if heat is None else heat.throttled,
    )


def _memory() -> MemorySize:
    size = memory_size()
    if size is None:
        raise EdgeFLError("this system does not show its memory", fix="Profile a device that runs Linux or Android.")
    return size


def _speed(request: ProfileRequest, url: str, progress: Progress) -> Speed:
    progress("network", 0.0)
    return measure_speed(url, request.key, tls=request.tls)


def _cases(request: ProfileRequest, engine: Engine, *, limit: int) -> list[Case]:
    """Return the cases that should fit this device's memory, or the smallest of all."""
    if _is_executorch(engine):
        own = request.programs if not request.bundles else None
        cases = program_cases(request.bundles) if own is None else own.cases()
    else:
        bundles = [read_bundle(path) for path in request.bundles] or reference_bundles()
        cases = [case for bundle in bundles for case in _bundle_cases(bundle, engine, request.seconds, len(bundles))]
    fitting = [case for case in cases if case.likely_bytes <= limit]
    return fitting or [min(cases, key=lambda case: case.likely_bytes)]


def _bundle_cases(bundle: Bundle, engine: Engine, seconds: float, bundles: int) -> list[Case]:
    programs = programs_of(bundle)
    return cases_of(
        bundle, programs, fitting_batch(engine, bundle, programs, seconds=seconds * _LONGEST_STEP / bundles)
    )


def _times(
    engine: Engine, cases: Sequence[Case], seconds: float, loading: float, progress: Progress
) -> tuple[TimingResult, PowerSource]:
    """Time the steps, and measure the power at rest and meanwhile."""
    left = max(seconds * _TIMING - loading, seconds * _LEAST_TIMING)
    source = choose_energy_source()
    progress("the device at rest", 0.02)
    rest = idle_watts(source, seconds * _IDLE)
    busy = source.start()
    try:
        timing = time_cases(
            engine, cases, seconds=left, progress=lambda share: progress("steps", _IDLE + _TIMING * share)
        )
    finally:  # some instruments have a thread to stop
        amount = busy.stop()
    return timing, power_source(source, idle_watts=rest, busy=amount)


def _peaks(
    request: ProfileRequest, engine: Engine, threads: ThreadSettings, cases: Sequence[Case], progress: Progress
) -> MemoryPeaks:
    return peaks_of(
        cases,
        engine=request.engine,
        threads=threads,
        seconds=request.seconds * _MEMORY,
        fresh=not _is_executorch(engine),
        progress=lambda share: progress("memory", _IDLE + _TIMING + _MEMORY * share),
    )


def _is_executorch(engine: Engine) -> bool:
    return engine.format is GraphFormat.EXECUTORCH


def _measured(amounts: Mapping[Case, float], *, by_model: bool) -> list[CostSample]:
    """Pair amounts with the work that they were measured for, in groups of one model or one mask."""
    return [
        CostSample(case.program.model if by_model else case.mask.digest, work_of(case.cost, case.batch), amount)
        for case, amount in amounts.items()
    ]


def _models(cases: Sequence[Case], *, built_in: bool) -> str:
    names = ", ".join(dict.fromkeys(case.program.model for case in cases))
    return f"built-in {names}" if built_in else names[:200]


def _notes(cases: Sequence[Case], timing: TimingResult, peaks: MemoryPeaks, *, built_in: bool) -> Iterator[str]:
    if timing.crowded:
        yield (
            f"Other work had the processor for {timing.waiting:.0%} of the time, so the fastest steps were taken. "
            "Measure again when the device is quiet."
        )
    if len(timing.timed) < len(cases):
        yield f"Time was enough for {len(timing.timed)} of {len(cases)} cases, the smaller ones; --seconds gives more."
    if built_in:
        yield "These are the built-in models: predictions for your own are rougher, unless you give it with --bundle."
    if all(case.mask.trained == frozenset(case.mask.graph.trainable_layers) for case in cases):
        yield "No cut graph was measured, so steps with frozen layers are guessed: install onnx to measure them."
    if not peaks.fresh:
        yield "Memory was measured in this process and not in fresh ones, so it is rough."
    if any(memory.provenance is not Provenance.MEASURED for memory in peaks.of.values()):
        yield "This system does not show peak memory: what it says is an estimate."
