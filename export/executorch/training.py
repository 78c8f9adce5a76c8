"""The training program of one mask: batch and weights in, loss, correctness and gradients out.

    inputs    x, y, label_mask (masked cross-entropy only), seed (with dropout only), then every tensor of the model in
              the model's order, in the shape that the mask gives it
    outputs   loss; correct, one flag per sample (cross-entropy only); grad:<tensor> for the trained tensors, in the
              model's order; new:<statistic> for the running statistics that a step updates

The names are those of the ONNX training graph. Shapes and the batch size are static: a program serves one mask.
"""

from dataclasses import dataclass

from torch import Tensor, nn

from edgefl.masks import Mask
from edgefl.values import Digest
from export.executorch.quiet_output import quiet
from export.executorch.source_modules import module_using
from export.executorch.step import trace_step
from export.executorch.toolchain import compile_portable
from export.executorch.traced_submodel import traced_submodel
from export.losses import Loss

__all__ = ["TrainingProgram", "training_program"]


@dataclass(frozen=True, slots=True)
class TrainingProgram:
    """An ExecuTorch program that computes one training step, and the inputs and outputs of its method `forward`."""

    pte: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    batch: int
    """The number of samples that x and y must have."""
    mask: Digest
    """The mask that it was compiled for."""


def training_program(model: nn.Module, example: Tensor, mask: Mask, loss: Loss = Loss.CROSS_ENTROPY) -> TrainingProgram:
    """Compile the training step of a mask's submodel; the example batch gives the shape of x.

    The mask must belong to the graph that `export.describe_graph` builds from the model. The weights are inputs, so the
    program holds none, and depends only on how many channels the mask keeps, not on which.
    """
    small = traced_submodel(model, example, mask, training=True)
    parameters = dict(small.named_parameters())
    trained = {name for name in mask.trained_tensors if name in parameters and parameters[name].is_floating_point()}
    with quiet():
        step = trace_step(small, example, list(mask.graph.tensor), trained, loss)
    pte = compile_portable(step.graph, step.examples, lambda operation: module_using(small, example, operation))
    return TrainingProgram(pte, step.inputs, step.outputs, example.shape[0], mask.digest)
