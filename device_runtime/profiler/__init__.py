"""The profiler: measures what a training step costs this device, with the real engine on real graphs, and fits a model.

profiler.py             one call that returns a `DeviceProfile`
reference_models.py     the built-in models, used if no bundle is given
cases.py                one thing to measure: a program, a mask, a batch size
case_selection.py       the widths, cuts and batch sizes to measure
executorch_cases.py     ExecuTorch programs, which are compiled elsewhere
federation_programs.py  those of a federation, downloaded from its coordinator
separate_process.py     measures one engine in a process of its own
engine_choice.py        which of several engines is faster
step_timing.py          seconds per step, within a time limit
memory.py               peak memory per step
memory_probe.py         measures one case in its own process
cost_fit.py             fits a `CostFit` to the measurements, with its error
network.py              bytes per second to and from a coordinator
"""

from device_runtime.profiler.profiler import DEFAULT_SECONDS, ProfileRequest, measure

__all__ = ["DEFAULT_SECONDS", "ProfileRequest", "measure"]
