"""The battery, while the device lives on it: power as its gauge shows it, or what the gauge counts.

Only a battery that discharges shows what the device takes; on external power this source is absent, and a charger that
is plugged in during a round makes the measurement void. Gauges are slow (about one reading a second) and the counters
are coarse (often 36 J a step), so power is preferred where the gauge shows it. Drivers disagree on the sign of the
current: only its size is used.

    power_now in microwatts; current_now in microamperes x voltage_now in microvolts
    energy_now in microwatt-hours; charge_now in microampere-hours x voltage_now
"""

from collections.abc import Callable
from pathlib import Path

from device_runtime.telemetry.commands import Command, run
from device_runtime.telemetry.energy.counted import CountedEnergy
from device_runtime.telemetry.energy.sampled import SampledPower
from device_runtime.telemetry.energy.source import EnergySource, Label
from device_runtime.telemetry.energy.supplies import batteries, is_discharging
from device_runtime.telemetry.system_files import ROOT, number_of
from edgefl.values import Provenance, Scope

__all__ = ["find"]

_HERTZ = 1.0
_SECONDS_AN_HOUR = 3600


def find(root: Path = ROOT, run: Command = run) -> EnergySource | None:
    """The battery that the device lives on, or None. With two, as some laptops have, both are summed."""
    fitted = batteries(root)
    power = _while_discharging(fitted, _watts)
    if power() is not None:
        label = Label("battery gauge, power", Scope.DEVICE, Provenance.MEASURED)
        return SampledPower(label, power, _HERTZ)
    volts = {battery: (number_of(battery / "voltage_now") or 0) * 1e-6 for battery in fitted}
    remaining = _while_discharging(fitted, lambda battery: _remaining_joules(battery, volts[battery]))
    if remaining() is None:
        return None

    def taken() -> list[float] | None:
        left = remaining()
        return None if left is None else [-left]  # what is left falls as what was taken rises

    label = Label("battery gauge, counter", Scope.DEVICE, Provenance.MEASURED)
    return CountedEnergy(label, taken, wraps_at=(None,))


def _while_discharging(fitted: list[Path], reading: Callable[[Path], float | None]) -> Callable[[], float | None]:
    """The sum over the batteries; None while the device does not live on them, or if a gauge does not answer."""

    def total() -> float | None:
        if not any(is_discharging(battery) for battery in fitted):
            return None
        readings = [reading(battery) for battery in fitted]
        return None if None in readings else sum(value for value in readings if value is not None)

    return total


def _watts(battery: Path) -> float | None:
    if not is_discharging(battery):
        return 0.0  # of two batteries, one waits for its turn
    microwatts = number_of(battery / "power_now")
    if microwatts is not None:
        return abs(microwatts) * 1e-6
    microamperes, microvolts = number_of(battery / "current_now"), number_of(battery / "voltage_now")
    return None if microamperes is None or microvolts is None else abs(microamperes) * microvolts * 1e-12


def _remaining_joules(battery: Path, volts: float) -> float | None:
    """What is left in the battery. The volts are those of the start: a voltage that sags under load would otherwise
    change the worth of all the charge that is left, and look like joules taken."""
    microwatt_hours = number_of(battery / "energy_now")
    if microwatt_hours is not None:
        return microwatt_hours * 1e-6 * _SECONDS_AN_HOUR
    microampere_hours = number_of(battery / "charge_now")
    return None if microampere_hours is None or not volts else microampere_hours * 1e-6 * _SECONDS_AN_HOUR * volts
