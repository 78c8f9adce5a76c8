"""Which engine a device that has several should use: the one whose steps are predicted to be faster, if it fits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from device_runtime.profiler.cases import work_of
from device_runtime.profiler.reference_models import reference_bundles
from edgefl.masks import full_mask
from edgefl.values import DeviceProfile, engine_package

__all__ = ["EngineChoice", "StepWork", "built_in_work", "choose_engine"]

StepWork = Mapping[str, int]
"""The work of one step, by the names that `edgefl.values.CostFit` uses."""

_BATCH = 32
_ENOUGH = 0.9
"""Another engine than the first must take at most this share of its time: the first one trains every mask exactly."""
_MEMORY = ("activation_bytes", "parameter_bytes", "trained_parameters")
_TIME = ("forward_multiply_adds", "backward_multiply_adds", "activation_bytes", "trained_parameters")


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine, and why."""

    engine: str
    why: str


def choose_engine(profiles: Mapping[str, DeviceProfile], steps: Sequence[StepWork]) -> EngineChoice:
    """Choose among engines, the preferred one first, by their profiles and the steps that they would take."""
    first = next(iter(profiles))
    if len(profiles) == 1:
        return EngineChoice(first, f"{engine_package(profiles[first])} is the only engine here with a profile")
    seconds = {engine: _seconds(profile, steps) for engine, profile in profiles.items()}
    fitting = [engine for engine, profile in profiles.items() if _fits(profile, steps)] or list(profiles)
    best = min(fitting, key=lambda engine: seconds[engine])
    if first in fitting and seconds[best] > _ENOUGH * seconds[first]:
        best = first
    told = ", ".join(
        f"{engine_package(profile)}: {_milliseconds(seconds[engine])} ms a step"
        + ("" if engine in fitting else ", more memory than is free")
        for engine, profile in profiles.items()
    )
    return EngineChoice(best, f"{told}; taking {engine_package(profiles[best])}")


def built_in_work() -> list[StepWork]:
    """Return the steps of the whole built-in models, for a device that does not know the federation's model."""
    return [work_of(full_mask(bundle.graph).cost, _BATCH) for bundle in reference_bundles()]


def _seconds(profile: DeviceProfile, steps: Sequence[StepWork]) -> float:
    """Return the mean of the predicted times."""
    predicted = [profile.cost.step_seconds(**{name: step[name] for name in _TIME}) for step in steps]
    return sum(predicted) / max(1, len(predicted))


def _fits(profile: DeviceProfile, steps: Sequence[StepWork]) -> bool:
    peaks = [profile.cost.peak_bytes(**{name: step[name] for name in _MEMORY}) for step in steps]
    return max(peaks, default=0) <= profile.memory_free_bytes


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.0f}" if seconds >= 0.1 else f"{1e3 * seconds:.3g}"
