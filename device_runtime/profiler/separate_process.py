"""Measures one engine in a process of its own.

Two engines in one process slow each other down, and the libraries of ExecuTorch would stay in the memory of an agent
that never runs a program itself.
"""

from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from device_runtime.profiler.profiler import ProfileRequest, measure
from edgefl.errors import EdgeFLError
from edgefl.values import DeviceProfile, dumps, loads

__all__ = ["measure_separately"]


def measure_separately(request: ProfileRequest) -> tuple[DeviceProfile, list[str]]:
    """Return the profile of one engine, and remarks about how it was measured."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            profile, notes, error = pool.submit(_measured, request).result()
        except BrokenProcessPool:
            raise EdgeFLError(
                f"the process that measured the engine {request.engine or 'of this device'!r} ended by itself",
                fix="Check that the engine works here and that memory is free, or choose another with --engine.",
            ) from None
    if error is not None:
        raise EdgeFLError(error[0], fix=error[1])
    return loads(DeviceProfile, profile), notes


def _measured(request: ProfileRequest) -> tuple[str, list[str], tuple[str, str] | None]:
    notes: list[str] = []
    try:
        return dumps(measure(request, note=notes.append)), notes, None
    except EdgeFLError as error:
        return "", notes, (error.problem, error.fix)
