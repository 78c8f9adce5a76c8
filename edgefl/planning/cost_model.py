"""Predicts what training a submodel takes on a device, from the device's profile.

The result is a `Budget` that holds uses instead of limits, so `limits.exceeded_by(use)` tells whether it fits.
"""

from edgefl.model_graph import Cost
from edgefl.planning.training_load import TrainingLoad
from edgefl.values import LARGEST_INTEGER, Budget, DeviceProfile

__all__ = ["predict"]


_PLAIN = TrainingLoad()


def predict(
    profile: DeviceProfile,
    cost: Cost,
    *,
    batch: int,
    steps: int = 1,
    load: TrainingLoad = _PLAIN,
    around: Cost | None = None,
) -> Budget:
    """Return what `steps` training steps on batches of this size take, by a rule of this load.

    `around` is the cost of a larger part whose arrays are in memory, where the engine runs copies of some of it.
    """
    fit = profile.cost
    step = fit.step_seconds(
        forward_multiply_adds=batch * cost.forward_multiply_adds,
        backward_multiply_adds=batch * cost.backward_multiply_adds,
        activation_bytes=cost.activation_bytes(batch),
        trained_parameters=cost.trained_parameters,
    )
    peak = fit.peak_bytes(
        activation_bytes=cost.activation_bytes(batch),
        parameter_bytes=cost.parameter_bytes if around is None else around.parameter_bytes + cost.parameter_bytes,
        trained_parameters=cost.trained_parameters if around is None else around.trained_parameters,
    )
    peak = min(peak + load.copies * cost.parameter_bytes, LARGEST_INTEGER)
    seconds = _within(load.engine_runs(steps) * step)
    watts = None if profile.power is None else profile.power.busy_watts
    return Budget(
        trainable_parameters=cost.trained_parameters,
        round_seconds=seconds,
        peak_bytes=peak,
        joules=None if watts is None else _within(max(0.0, watts) * seconds),
    )


def _within(value: float) -> float:
    """Return a number that a budget can hold: a profile may come from a stranger and contain anything."""
    return min(value, float(LARGEST_INTEGER))
