"""Engines: they run training graphs and models on this device behind one interface.

engine.py              the interface, and which engines are installed
onnx.py                onnxruntime: any width, any batch size
executorch.py          ExecuTorch: programs compiled for the widths of a submodel
executorch_program.py  a loaded program file
program_check.py       whether a program's description fits a submodel
cancellation.py        ends what an engine computes when its task must stop
float_environment.py   restores the floating-point settings that a library changes
"""

from device_runtime.engines.cancellation import Cancellation
from device_runtime.engines.engine import (
    ENGINES,
    Engine,
    EngineStep,
    Predictor,
    ThreadSettings,
    installed_engines,
    open_engine,
)

__all__ = [
    "ENGINES",
    "Cancellation",
    "Engine",
    "Predictor",
    "EngineStep",
    "ThreadSettings",
    "installed_engines",
    "open_engine",
]
