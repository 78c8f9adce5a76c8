"""How far a device's rounds are from the predictions, learned from its telemetry.

A profile is measured once, on a cool, idle device. Rounds are different: other programs run, the device gets hot, its
battery runs down. The coordinator keeps one `Correction` per device and updates it with every round's telemetry.
`budgets.py` divides the device's limits by it, so a device that turned out slower gets a smaller submodel.

Telemetry comes from strangers. Whatever it says, a factor stays between 1/8 and 8, and one report moves it at most
halfway.
"""

import math
from dataclasses import dataclass, replace

from edgefl.values import Count, Prediction, Ratio, Reason, Telemetry, ThermalStatus, check_fields, document

__all__ = ["Correction", "corrected", "faded", "refused"]

LARGEST = 8.0
"""The largest factor; the smallest is one over this."""
MEMORY = 0.5
"""The weight of a new report against all earlier ones."""
HOT_CELSIUS = 75.0
"""The temperature from which a device is hot. Processors of phones and Raspberry Pis throttle between 80 and 85."""
HOT_STATUS = ThermalStatus.MODERATE
"""The thermal status from which a device is hot: the system throttles it."""
STRAIN_STEP = 1.5
"""A report of heat or of spent energy multiplies the strain by this; a normal report divides it."""
MOST_STRAIN = 4.0


@document("correction", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """Factors on predictions; 1 is as predicted, 2 is twice as much."""

    seconds: Ratio = 1.0
    """How much longer rounds take."""

    peak_bytes: Ratio = 1.0
    """How much more memory they take."""

    joules: Ratio = 1.0
    """How much more energy they take."""

    strain: Ratio = 1.0
    """A further factor on time and energy while the device reports heat or runs out of energy; 1 is normal."""

    learned_at: Count = 0
    """When it was learned, in seconds since 1970."""

    def __post_init__(self) -> None:
        check_fields(self)
        for name, low, high in (
            ("seconds", 1 / LARGEST, LARGEST),
            ("peak_bytes", 1 / LARGEST, LARGEST),
            ("joules", 1 / LARGEST, LARGEST),
            ("strain", 1.0, MOST_STRAIN),
        ):
            object.__setattr__(self, name, min(max(getattr(self, name), low), high))


def corrected(before: Correction, predicted: Prediction, telemetry: Telemetry) -> Correction:
    """Return the correction after a round. A quantity that was not predicted or not reported keeps its factor."""
    energy = telemetry.energy
    return Correction(
        seconds=_followed(before.seconds, predicted.seconds, telemetry.latency.round_seconds),
        peak_bytes=_followed(before.peak_bytes, predicted.peak_bytes, telemetry.memory.peak_bytes),
        joules=_followed(before.joules, predicted.joules, None if energy is None else energy.joules),
        strain=before.strain * (STRAIN_STEP if _strained(telemetry) else 1 / STRAIN_STEP),
    )


def faded(correction: Correction, halvings: float) -> Correction:
    """Return a correction after a while: each halving halves its logarithm.

    A device that got no tasks cannot show that it has recovered, so the correction fades with time.
    """
    share = 0.5 ** max(halvings, 0.0)
    return replace(
        correction,
        seconds=correction.seconds**share,
        peak_bytes=correction.peak_bytes**share,
        joules=correction.joules**share,
        strain=correction.strain**share,
    )


def refused(before: Correction, reason: Reason) -> Correction:
    """Return the correction after a device refused a task.

    Telemetry comes only from finished rounds, so a day's energy that was spent too early shows up here and not there.
    A smaller task would not help a device that is unplugged, on a metered network, saving battery or outside its hours:
    these conditions of its owner leave the plan as it is.
    """
    if reason in (Reason.TEMPERATURE, Reason.THERMAL, Reason.ENERGY):
        return replace(before, strain=before.strain * STRAIN_STEP)
    if reason is Reason.MEMORY:
        return replace(before, peak_bytes=before.peak_bytes * STRAIN_STEP)
    if reason is Reason.DEADLINE:
        return replace(before, seconds=before.seconds * STRAIN_STEP)
    return before


def _followed(factor: float, predicted: float | None, measured: float | None) -> float:
    """Move a factor halfway towards measured / predicted, in the logarithm: then twice as much and half as much are
    equally far off, and cancel out.
    """
    if not predicted or not measured:
        return factor  # not predicted, not reported, or a round of no time at all: a broken clock
    ratio = min(max(measured / predicted, 1 / LARGEST), LARGEST)
    return math.exp((1 - MEMORY) * math.log(factor) + MEMORY * math.log(ratio))


def _strained(telemetry: Telemetry) -> bool:
    thermal = telemetry.thermal
    if thermal is None:
        return False
    pressed = thermal.end_status is not None and thermal.end_status.severity >= HOT_STATUS.severity
    return pressed or thermal.throttled is True or (thermal.end_celsius or 0.0) >= HOT_CELSIUS
