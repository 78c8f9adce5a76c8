"""Telemetry: what a task costs this device in time, memory, energy and heat; and what device this is.

Reads the system through files below a root folder and through one function that runs commands, so it works from
captured files as it does on a device. A source that is not there is absent, never an error; every number carries the
label of the source that it came from.

    recorder           one object around a task, gives `edgefl.values.Telemetry`
    latency, clock     times of the steps; the clock and the sampling thread
    memory             baseline and peak of a round
    memory_size        total and available memory, limits of containers included
    energy/            joules, from the best instrument there is
    thermal, throttling   temperature; was the processor slowed down?
    machine            architecture, cores, a name, free storage
    system_files, commands, cgroups   how the system is read
"""

from device_runtime.telemetry.energy import EnergySource, choose, idle_watts, plugged, power_source
from device_runtime.telemetry.latency import StepTimer
from device_runtime.telemetry.machine import device_name, free_storage, machine, usable_cores
from device_runtime.telemetry.memory import MemoryWatch
from device_runtime.telemetry.memory_size import MemorySize, memory_size
from device_runtime.telemetry.recorder import Recorder
from device_runtime.telemetry.thermal import ThermalWatch, celsius

__all__ = [
    "Recorder",
    "StepTimer",
    "MemoryWatch",
    "MemorySize",
    "memory_size",
    "EnergySource",
    "choose",
    "idle_watts",
    "power_source",
    "plugged",
    "ThermalWatch",
    "celsius",
    "machine",
    "usable_cores",
    "device_name",
    "free_storage",
]
