"""The training program of one mask: batch and weights in, loss, correctness and gradients out.

    inputs    x, y, sample_weights, label_mask (masked cross-entropy only), then every tensor of the model in the
              model's order, in the shape that the mask gives it
    outputs   loss; correct, one flag per sample (cross-entropy only); grad:<tensor> for the trained tensors, in the
              model's order; new:<statistic> for the running statistics of trained layers that a step updates

The names are those of the ONNX training graph, but for sample_weights: 1/r for each of the r samples of a batch, and 0
for those that fill it up, which then do not count. Shapes and the batch size are static: a program serves one mask.
"""

from dataclasses import dataclass

from torch import Tensor, nn

from edgefl.errors import ExportError
from edgefl.masks import Mask
from edgefl.values import Digest
from export.executorch.quiet_output import quiet
from export.executorch.source_modules import is_random, module_using, refuse_random
from export.executorch.step import trace_step
from export.executorch.submodel import submodel
from export.executorch.toolchain import compile_portable
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
    small = submodel(model, mask).train()
    refuse_random(small)
    with quiet():
        step = trace_step(small, example, list(mask.graph.tensor), set(mask.trained_tensors), loss)
    random = next((str(node.target) for node in step.graph.graph.nodes if is_random(node.target)), None)
    if random is not None:
        raise ExportError(
            f"the operation {random} in {module_using(small, example, random)} draws random numbers",
            fix="Leave it out for ExecuTorch, or export the model to ONNX, module_using dropout is seeded.",
        )
    pte = compile_portable(step.graph, step.examples, lambda operation: module_using(small, example, operation))
    return TrainingProgram(pte, step.inputs, step.outputs, example.shape[0], mask.digest)
