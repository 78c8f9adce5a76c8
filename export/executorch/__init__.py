"""ExecuTorch: fast training programs for a ladder of widths and cuts, and inference programs delegated to XNNPACK.

program.py           programs by their specification: a training step or a prediction, weights as inputs
ladder.py            which programs of a ladder to compile, the most useful ones first
compilation.py       compiles many programs in parallel, within a time limit
compile_worker.py    the process that compiles them
program_cache.py     compiled programs on disk
training.py          the training program of a mask
inference.py         the inference program of a mask
submodel.py          the model's own code at a mask's widths, to compare with
traced_submodel.py   the operations that the ONNX exporter traced, at a mask's widths
resizing.py          operations that name sizes or widths, rewritten for a submodel's
sizes.py             what a traced model's axes measure in a submodel
step.py              traces a training step: forward pass, loss, backward pass
lowering.py          the table of lowerings: what each operation becomes
strided.py           the one fast copy that all others are built on
arithmetic.py        products, sums and broadcasting
convolution.py       convolutions as matrix products
pooling.py           pooling by shifted images
adaptive_pooling.py  adaptive pools whose windows differ in size
attention.py         attention as products and a softmax
dropout.py           dropout from a seed, as in the ONNX graph
recurrent.py         LSTM, GRU and plain recurrent layers, step by step
recurrent_cells.py   one step of each, forward and back
norms.py             batch norm and group norm
optimise_step.py     removes needless copies and repeated computations from a traced step
folding.py           folds batch norm into the layer before it
toolchain.py         the only file that calls ExecuTorch's exporter
runner.py            runs programs in this process
source_modules.py    names the module that an operation comes from, for errors
quiet_output.py      keeps torch and ExecuTorch off the terminal, and their errors short

The name is that of the library, whose own package is always imported as `executorch`, never relative to this one.
"""

from export.executorch.inference import InferenceProgram, inference_program
from export.executorch.program import ProgramCompiler, compile_program
from export.executorch.runner import Runner, run_step
from export.executorch.submodel import submodel
from export.executorch.traced_submodel import TracedSubmodel, traced_submodel
from export.executorch.training import TrainingProgram, training_program

__all__ = [
    "ProgramCompiler",
    "TrainingProgram",
    "compile_program",
    "training_program",
    "InferenceProgram",
    "inference_program",
    "Runner",
    "run_step",
    "submodel",
    "TracedSubmodel",
    "traced_submodel",
]
