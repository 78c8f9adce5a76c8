"""EdgeFL: federated training in which every device trains the part of the model it can afford.

This package is the core and the command line. It knows what a model, a mask, a budget and an update are, and
needs numpy and safetensors alone. Importing it imports neither, so that the command line starts at once: take
what you need from its rooms (`edgefl.masks`, `edgefl.wire`, ...).
"""

import os

__all__ = ["__version__"]

# onnxruntime tells its maker about its use unless this is set before it is imported. A device that trains on private
# data tells nobody anything; who wants it otherwise sets the variable to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__version__ = "0.1.0"
