"""Which profiles cannot be: a device is told at once that its numbers are wrong, and how.

A profile is a claim, and a client of one's own is easily wrong by a unit or leaves a number at a guess. Plans would
then be far too large or too small until rounds have corrected them (`correction.py`). The coordinator refuses such a
profile when it arrives. The bounds are generous: a Raspberry Pi Zero and a workstation are both far inside. What was
stored before is still read, and clamped where planning reads it (`profile_bounds.py`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from edgefl.values import CostFit, DeviceProfile, FieldError

__all__ = ["BOUNDS", "FASTEST_PER_CORE", "FEWEST_MEASUREMENTS", "REFERENCE", "check_plausible"]

FASTEST_PER_CORE = 1e12
"""Multiply-adds per second that no core exceeds: one with two units of 512 bits at 6 GHz reaches 2e11, a matrix unit of
a 2024 laptop 1e12."""
FEWEST_MEASUREMENTS = 3
"""Of step times: a fit needs three groups."""
REFERENCE = {
    "forward_multiply_adds": 1_000_000_000,
    "backward_multiply_adds": 2_000_000_000,
    "activation_bytes": 50_000_000,
    "trained_parameters": 1_000_000,
}
"""The work of a step by which a cost is judged as a whole: one of its terms alone may well be 0."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The range in which a number of a profile must be."""

    path: str
    least: float
    most: float
    unit: str


BOUNDS = (
    Bound("cost.overhead_seconds", 0, 600, "seconds"),
    Bound("cost.forward_seconds_per_multiply_add", 0, 1e-5, "seconds"),
    Bound("cost.backward_seconds_per_multiply_add", 0, 1e-5, "seconds"),
    Bound("cost.seconds_per_activation_byte", 0, 1e-5, "seconds"),
    Bound("cost.seconds_per_trained_parameter", 0, 1e-4, "seconds"),
    Bound("cost.memory_bytes_per_activation_byte", 0, 1000, "bytes per byte"),
    Bound("cost.memory_bytes_per_parameter_byte", 0, 1000, "bytes per byte"),
    Bound("cost.memory_bytes_per_trained_parameter", 0, 10_000, "bytes per parameter"),
    Bound("cost.relative_error", 0, 100, "(1 is 100 %)"),
    Bound("machine.cores", 1, 4096, "cores"),
    Bound("threads", 1, 4096, "threads"),
    Bound("memory_total_bytes", 16 * 2**20, 2**46, "bytes"),
    Bound("download_bytes_per_second", 1, 1e12, "bytes per second"),
    Bound("upload_bytes_per_second", 1, 1e12, "bytes per second"),
    Bound("power.idle_watts", 0, 10_000, "watts"),
    Bound("power.busy_watts", 0, 10_000, "watts"),
    Bound("temperature_celsius", -60, 150, "degrees Celsius"),
)
"""Beyond these, a number has another unit or was not measured. Null is always allowed where the schema allows it."""


def check_plausible(profile: DeviceProfile, *, path: tuple[str, ...] = ()) -> None:
    """Raise a `FieldError` with the exact reason if a profile cannot be; `path` is where it is in a larger document."""
    for where, problem, fix in _problems(profile):
        raise FieldError(problem, fix=fix, path=(*path, *where.split(".")))


def _problems(profile: DeviceProfile) -> Iterator[tuple[str, str, str]]:
    for bound in BOUNDS:
        value = _value(profile, bound.path)
        if value is not None and not bound.least <= value <= bound.most:
            yield (
                bound.path,
                f"is {value:g}, and no device is outside {bound.least:g} to {bound.most:g} {bound.unit}",
                "Measure it again, and check its unit",
            )
    cost = profile.cost
    if cost.measurements < FEWEST_MEASUREMENTS:
        problem = f"is {cost.measurements}, and a fit needs at least {FEWEST_MEASUREMENTS}"
        yield "cost.measurements", problem, "Time the cases of /v1/measurement"
    if cost.relative_error == 0:
        problem = "is 0, and no fit to measured times is exact"
        yield "cost.relative_error", problem, "Give the median error of what was left out of the fit"
    yield from _speed(cost, max(profile.machine.cores, profile.threads))
    if cost.memory_base_bytes > profile.memory_total_bytes:
        problem = f"is {cost.memory_base_bytes:,}, more than memory_total_bytes"
        yield "cost.memory_base_bytes", problem, "Measure the memory again"


def _speed(cost: CostFit, cores: int) -> Iterator[tuple[str, str, str]]:
    work = REFERENCE["forward_multiply_adds"] + REFERENCE["backward_multiply_adds"]
    seconds, least = cost.step_seconds(**REFERENCE), work / (FASTEST_PER_CORE * cores)
    if seconds < least:
        yield (
            "cost",
            f"predicts {seconds:.3g} s for a step of {work:.3g} multiply-adds, and {cores} "
            f"core{'s' if cores != 1 else ''} cannot take less than {least:.3g} s",
            "Time the cases of /v1/measurement, and fit the cost to them",
        )


def _value(profile: DeviceProfile, path: str) -> float | None:
    value: object = profile
    for name in path.split("."):
        value = None if value is None else getattr(value, name)
    return None if value is None else float(value)  # type: ignore[arg-type]
