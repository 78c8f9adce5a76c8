"""From what a device can do, what the operator allows and what earlier rounds taught, to a `Budget`.

Whoever plans a round calls this for every device first. A budget is in predicted units: a device that really takes
twice as long as predicted has half the seconds, so that the plan that fills them ends in time.
"""

from edgefl.errors import SchemaError
from edgefl.planning.correction import Correction
from edgefl.values import LARGEST_INTEGER, Budget, DeviceProfile

__all__ = ["budget_of"]


def budget_of(
    profile: DeviceProfile,
    *,
    deadline_seconds: float,
    share: float = 0.8,
    memory_bytes: int | None = None,
    joules: float | None = None,
    trainable_parameters: int | None = None,
    correction: Correction | None = None,
) -> Budget:
    """Return the most that a round may take on a device.

    `share` of the deadline is for training; the rest is for loading, the network, and being wrong. Memory is what was
    free on the device, or less if `memory_bytes` says so. None is no limit.
    """
    if not 0 < share <= 1:
        raise SchemaError(f"the share of the deadline is {share}", fix="Give a number above 0 and at most 1.")
    known = correction or Correction()
    memory = profile.memory_free_bytes if memory_bytes is None else min(memory_bytes, profile.memory_free_bytes)
    return Budget(
        trainable_parameters=trainable_parameters,
        round_seconds=deadline_seconds * share / (known.seconds * known.strain),
        peak_bytes=min(int(memory / known.peak_bytes), LARGEST_INTEGER),
        joules=None if joules is None else joules / (known.joules * known.strain),
    )
