"""The battery while it powers the device: the power that its gauge shows, or the charge that it counts.

Only a discharging battery shows what the device draws; on external power this source is absent, and plugging in a
charger during a task voids the measurement. Gauges are slow (about one reading per second) and their counters coarse
(often 36 J per step), so power is preferred where the gauge shows it. Drivers disagree on the sign of the current, so
only its magnitude is used.

    power_now in microwatts; current_now in microamperes x voltage_now in microvolts
    energy_now in microwatt-hours; charge_now in microampere-hours x voltage_now
"""

from collections.abc import Callable
from pathlib import Path

from device_runtime.telemetry.energy.energy_counter import EnergyCounter
from device_runtime.telemetry.energy.energy_source import EnergySource, SourceLabel
from device_runtime.telemetry.energy.power_sampling import PowerSampler
from device_runtime.telemetry.energy.power_supplies import batteries, is_discharging
from device_runtime.telemetry.sysfs import ROOT, read_int
from device_runtime.telemetry.system_commands import Command, run
from edgefl.values import Provenance, Scope

__all__ = ["find"]

_HERTZ = 1.0
_SECONDS_AN_HOUR = 3600


def find(root: Path = ROOT, run: Command = run) -> EnergySource | None:
    """Return the battery that powers the device, or None. If there are two, as in some laptops, they are added up."""
    fitted = batteries(root)
    power = _while_discharging(fitted, _watts)
    if power() is not None:
        label = SourceLabel("battery gauge, power", Scope.DEVICE, Provenance.MEASURED)
        return PowerSampler(label, power, _HERTZ)
    volts = {battery: (read_int(battery / "voltage_now") or 0) * 1e-6 for battery in fitted}
    remaining = _while_discharging(fitted, lambda battery: _remaining_joules(battery, volts[battery]))
    if remaining() is None:
        return None

    def taken() -> list[float] | None:
        left = remaining()
        return None if left is None else [-left]  # the remaining energy falls as the drawn energy rises

    label = SourceLabel("battery gauge, counter", Scope.DEVICE, Provenance.MEASURED)
    return EnergyCounter(label, taken, wraps_at=(None,))


def _while_discharging(fitted: list[Path], reading: Callable[[Path], float | None]) -> Callable[[], float | None]:
    """Return the sum over the batteries; None while they do not power the device, or if a gauge does not answer."""

    def total() -> float | None:
        if not any(is_discharging(battery) for battery in fitted):
            return None
        readings = [reading(battery) for battery in fitted]
        return None if None in readings else sum(value for value in readings if value is not None)

    return total


def _watts(battery: Path) -> float | None:
    if not is_discharging(battery):
        return 0.0  # one of two batteries may be idle
    microwatts = read_int(battery / "power_now")
    if microwatts is not None:
        return abs(microwatts) * 1e-6
    microamperes, microvolts = read_int(battery / "current_now"), read_int(battery / "voltage_now")
    return None if microamperes is None or microvolts is None else abs(microamperes) * microvolts * 1e-12


def _remaining_joules(battery: Path, volts: float) -> float | None:
    """Return the energy left in the battery, at its voltage from the start: a voltage that sags under load would change
    the value of all the remaining charge, and look like energy drawn."""
    microwatt_hours = read_int(battery / "energy_now")
    if microwatt_hours is not None:
        return microwatt_hours * 1e-6 * _SECONDS_AN_HOUR
    microampere_hours = read_int(battery / "charge_now")
    return None if microampere_hours is None or not volts else microampere_hours * 1e-6 * _SECONDS_AN_HOUR * volts
