"""The profiler: what a training step costs this device, measured with the real engine on real graphs, and fitted.

profiler.py       one call from nothing to a `DeviceProfile`
cases.py          one thing to measure: a program, a mask, a batch size
choice.py         which widths, cuts and batch sizes of a model
reference.py      the built-in models, for a device that was given none
programs.py       ExecuTorch programs, which are compiled elsewhere
timing.py         seconds of steps, in turns, within a limit of time
memory.py, memory_probe.py   memory of steps, each in a process of its own
fit.py            from measurements to a `CostFit`, with an honest error
network.py        bytes a second to and from a coordinator
"""

from device_runtime.profiler.profiler import DEFAULT_SECONDS, ProfileRequest, measure

__all__ = ["DEFAULT_SECONDS", "ProfileRequest", "measure"]
