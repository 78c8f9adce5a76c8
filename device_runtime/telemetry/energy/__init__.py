"""Energy: how many joules a round took, by the best instrument that this machine has.

source      what every source has in common: `EnergySource`, its label, an amount
choice      the sources in order of trust; `choose` returns the first that is there
pmic        Raspberry Pi 5: its power chip
hwmon       INA power meters that were fitted
jetson      the rails of NVIDIA's boards
rapl        counters of Intel and AMD processors
battery     the gauge of a battery that the device lives on
estimate    CPU seconds times a constant, where there is nothing else
sampled     from power to energy: samples in a thread, trapezoid rule
counted     from a counter to energy: differences, wrap-around
supplies    batteries and plugs
meter       one round, as `edgefl.values.Energy`; the power of a device, as `PowerSource`
"""

from device_runtime.telemetry.energy.choice import choose
from device_runtime.telemetry.energy.estimate import CpuTimeEstimate, watts_per_core
from device_runtime.telemetry.energy.meter import EnergyMeter, idle_watts, power_source
from device_runtime.telemetry.energy.source import Amount, EnergySource, Label, Measurement
from device_runtime.telemetry.energy.supplies import plugged

__all__ = [
    "EnergySource",
    "Measurement",
    "Label",
    "Amount",
    "choose",
    "EnergyMeter",
    "idle_watts",
    "power_source",
    "CpuTimeEstimate",
    "watts_per_core",
    "plugged",
]
