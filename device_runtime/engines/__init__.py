"""Engines: what runs a training graph or a model on this device, behind one seam.

engine.py        the seam, and which engines are installed
onnx.py          onnxruntime: any width, any batch size
executorch.py    ExecuTorch: programs compiled for one mask and one batch size; its Python binding needs torch
"""

from device_runtime.engines.engine import (
    ENGINES,
    Engine,
    EngineStep,
    Predictor,
    ThreadSettings,
    installed_engines,
    open_engine,
)

__all__ = ["ENGINES", "Engine", "Predictor", "EngineStep", "ThreadSettings", "installed_engines", "open_engine"]
