"""EdgeFL: federated training in which every device trains the part of the model it can afford.

This package is the core and the command line. It knows what a model, a mask, a budget and an update are, and
needs numpy and safetensors alone. Importing it imports neither, so that the command line starts at once: take
what you need from its rooms (`edgefl.masks`, `edgefl.wire`, ...).
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
