"""Bounds on what a plan believes of a profile. A profile is a claim, and its schema allows numbers up to 1e308.

Claims are clamped where planning reads them: a profile that was stored earlier can always be read, and a number beyond
these bounds means no more than the bound itself. Below them everything stays as it is, to the bit. A profile that
arrives is judged by narrower bounds (`plausible.py`), and refused with the reason.
"""

from dataclasses import replace

from edgefl.values import CostFit, DeviceProfile, PowerSource

__all__ = ["bounded"]

_MOST_BYTES = 2**50
"""A pebibyte of memory. Sums of a few such numbers are still exact, and fit a JSON integer."""
_MOST_STEP_SECONDS = 1e9
"""Thirty years for the fixed part of a step."""
_MOST_SECONDS_EACH = 1.0
"""A second for one multiply-add, byte or parameter."""
_MOST_RATIO = 1e6
_MOST_WATTS = 1e6
_LEAST_RATE = 1.0
"""Bytes per second."""
_COST_BOUNDS = {
    "overhead_seconds": _MOST_STEP_SECONDS,
    "forward_seconds_per_multiply_add": _MOST_SECONDS_EACH,
    "backward_seconds_per_multiply_add": _MOST_SECONDS_EACH,
    "seconds_per_activation_byte": _MOST_SECONDS_EACH,
    "seconds_per_trained_parameter": _MOST_SECONDS_EACH,
    "memory_base_bytes": _MOST_BYTES,
    "memory_bytes_per_activation_byte": _MOST_RATIO,
    "memory_bytes_per_parameter_byte": _MOST_RATIO,
    "memory_bytes_per_trained_parameter": _MOST_RATIO,
}


def bounded(profile: DeviceProfile) -> DeviceProfile:
    """Return the profile itself, or one with every number within bounds."""
    changed: dict[str, object] = {}
    cost, power = _bounded_cost(profile.cost), _bounded_power(profile.power)
    if cost is not profile.cost:
        changed["cost"] = cost
    if power is not profile.power:
        changed["power"] = power
    for name in ("memory_total_bytes", "memory_free_bytes", "storage_free_bytes"):
        if getattr(profile, name) > _MOST_BYTES:
            changed[name] = _MOST_BYTES
    for name in ("download_bytes_per_second", "upload_bytes_per_second"):
        rate = getattr(profile, name)
        if rate is not None and rate < _LEAST_RATE:
            changed[name] = _LEAST_RATE
    return replace(profile, **changed) if changed else profile  # type: ignore[arg-type]


def _bounded_cost(cost: CostFit) -> CostFit:
    beyond = {name: most for name, most in _COST_BOUNDS.items() if getattr(cost, name) > most}
    return replace(cost, **beyond) if beyond else cost  # type: ignore[arg-type]


def _bounded_power(power: PowerSource | None) -> PowerSource | None:
    if power is None or max(power.busy_watts or 0.0, power.idle_watts or 0.0) <= _MOST_WATTS:
        return power
    idle, busy = (None if watts is None else min(watts, _MOST_WATTS) for watts in (power.idle_watts, power.busy_watts))
    return replace(power, idle_watts=idle, busy_watts=busy)
