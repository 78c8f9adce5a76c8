"""The budget of one device for one round, from its profile, the operator's limits and what earlier rounds taught.

A budget is in predicted units: a device that takes twice as long as predicted gets half the seconds, so that a plan
that fills them ends in time.
"""

import math

from edgefl.errors import SchemaError
from edgefl.planning.correction import Correction
from edgefl.values import LARGEST_INTEGER, Budget, DeviceProfile

__all__ = ["ROUND_SHARE", "budget_of"]

ROUND_SHARE = 0.5
"""Share of a round's deadline that is planned for training, unless the operator sets another."""


def budget_of(
    profile: DeviceProfile,
    *,
    deadline_seconds: float,
    round_share: float = ROUND_SHARE,
    most_seconds: float | None = None,
    memory_bytes: int | None = None,
    joules: float | None = None,
    trainable_parameters: int | None = None,
    correction: Correction | None = None,
) -> Budget:
    """Return the most that a round may take on a device.

    `round_share` of the deadline is for training, and `most_seconds` at most; the rest is for loading, the network,
    prediction errors, and the time in which the device is not there. Memory is what was free on the device, or less if
    `memory_bytes` is lower. None means no limit.
    """
    if not 0 < round_share <= 1:
        raise SchemaError(f"the share of the deadline is {round_share}", fix="Give a number above 0 and at most 1.")
    known = correction or Correction()
    training = min(deadline_seconds * round_share, math.inf if most_seconds is None else most_seconds)
    memory = profile.memory_free_bytes if memory_bytes is None else min(memory_bytes, profile.memory_free_bytes)
    return Budget(
        trainable_parameters=trainable_parameters,
        round_seconds=training / (known.seconds * known.strain),
        peak_bytes=min(int(memory / known.peak_bytes), LARGEST_INTEGER),
        joules=None if joules is None else joules / (known.joules * known.strain),
    )
