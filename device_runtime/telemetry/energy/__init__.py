"""Energy: the joules of a task, from the best instrument that this machine has.

energy_meter.py       measures one task as `edgefl.values.Energy`; a device's power as `PowerSource`
energy_source.py      the interface of every source: `EnergySource`, its label, an amount
source_selection.py   chooses the most trusted source available
pmic.py               the power chip of a Raspberry Pi 5
hwmon.py              INA power meters, and the rails of NVIDIA's Jetson boards
rapl.py               energy counters of Intel and AMD processors
battery.py            the gauge of a battery that powers the device
cpu_time_estimate.py  CPU seconds times a constant, if there is nothing else
power_sampling.py     from power to energy: samples in a thread, trapezoid rule
energy_counter.py     from a counter to energy: differences, wrap-around
power_supplies.py     batteries and external power
"""

from device_runtime.telemetry.energy.cpu_time_estimate import CpuTimeEstimate, watts_per_core
from device_runtime.telemetry.energy.energy_meter import EnergyMeter, idle_watts, power_source
from device_runtime.telemetry.energy.energy_source import EnergyAmount, EnergyMeasurement, EnergySource, SourceLabel
from device_runtime.telemetry.energy.power_supplies import plugged
from device_runtime.telemetry.energy.source_selection import choose_energy_source

__all__ = [
    "EnergySource",
    "EnergyMeasurement",
    "SourceLabel",
    "EnergyAmount",
    "choose_energy_source",
    "EnergyMeter",
    "idle_watts",
    "power_source",
    "CpuTimeEstimate",
    "watts_per_core",
    "plugged",
]
