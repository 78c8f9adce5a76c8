"""ExecuTorch: a training program per mask whose step is fast, and inference programs delegated to XNNPACK.

training.py     the training program: what goes in, what comes out
inference.py    the inference program
submodel.py     the model at a mask's widths
step.py         a training step, traced: forward pass, loss, backward pass
lowering.py     the table: what each operation becomes
strided.py      the one fast copy; on it stand arithmetic.py, convolution.py, pooling.py, norms.py: the forms
tidying.py      copies that are left out or made fast
folding.py      batch norm into the layer before it
toolchain.py    the only file that calls ExecuTorch's exporter
runner.py       runs programs in this process
blame.py, quiet.py    errors that name the module; nothing else on stderr

The name is that of the library, whose own package is always imported as `executorch`, never relative to this one.
"""

from export.executorch.inference import InferenceProgram, inference_program
from export.executorch.runner import Runner, run_step
from export.executorch.submodel import submodel
from export.executorch.training import TrainingProgram, training_program

__all__ = [
    "TrainingProgram",
    "training_program",
    "InferenceProgram",
    "inference_program",
    "Runner",
    "run_step",
    "submodel",
]
