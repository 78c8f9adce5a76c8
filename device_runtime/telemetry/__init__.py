"""Telemetry: what a task costs this device in time, memory, energy and heat; and facts about the machine.

It reads the system through files below a root folder and through one function that runs commands, so it works on
captured files as it does on a device. A missing source is simply absent, never an error; every number carries the label
of its source.

recorder.py          one object around a task, which returns `edgefl.values.Telemetry`
latency.py           times of the steps
clock.py             the monotonic clock, and the sampling thread
peak_memory.py       baseline and peak memory of a task
energy/              joules, from the best instrument available
thermal.py           temperature of the processor
throttling.py        whether the processor was throttled
restraint.py         whether the network is metered, and the system saves battery
machine.py           architecture, cores, a name, free storage
memory_size.py       total and available memory, including limits of containers
cgroups.py           the control groups of this process
sysfs.py             reads small files of /proc and /sys
system_commands.py   runs commands such as `vcgencmd`
"""

from device_runtime.telemetry.energy import EnergySource, choose_energy_source, idle_watts, plugged, power_source
from device_runtime.telemetry.latency import StepTimer
from device_runtime.telemetry.machine import device_name, free_storage, machine, usable_cores
from device_runtime.telemetry.memory_size import MemorySize, memory_size
from device_runtime.telemetry.peak_memory import MemoryWatch
from device_runtime.telemetry.recorder import Recorder
from device_runtime.telemetry.restraint import battery_saver, metered
from device_runtime.telemetry.thermal import ThermalWatch, celsius

__all__ = [
    "Recorder",
    "StepTimer",
    "MemoryWatch",
    "MemorySize",
    "memory_size",
    "EnergySource",
    "choose_energy_source",
    "idle_watts",
    "power_source",
    "plugged",
    "ThermalWatch",
    "celsius",
    "metered",
    "battery_saver",
    "machine",
    "usable_cores",
    "device_name",
    "free_storage",
]
