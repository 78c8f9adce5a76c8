"""The training program of one mask: batch and weights in, loss, correctness and gradients out.

    inputs    x, y, sample_weights, label_mask (masked cross-entropy only), seed (with dropout only), then every tensor
              of the model in the model's order, in the shape that the mask gives it
    outputs   loss; correct, one flag per sample (cross-entropy only); grad:<tensor> for the trained tensors, in the
              model's order; new:<statistic> for the running statistics of trained layers that a step updates

The names are those of the ONNX training graph, but for sample_weights: 1/r for each of the r samples of a batch, and 0
for those that fill it up, which then do not count. Shapes and the batch size are static: a program serves one mask.
"""

from dataclasses import dataclass

from torch import Tensor, nn

from edgefl.masks import Mask
from edgefl.values import Digest
from export.executorch.quiet_output import quiet
from export.executorch.source_modules import module_using
from export.executorch.step import TracedStep, trace_prediction, trace_step
from export.executorch.toolchain import PortableGraph, lower_portable
from export.executorch.traced_submodel import TracedSubmodel, traced_submodel
from export.inference_graph import OUTPUT
from export.losses import Loss

__all__ = ["LoweredGraph", "TrainingProgram", "lowered_prediction", "lowered_step", "training_program"]


@dataclass(frozen=True, slots=True, eq=False)
class LoweredGraph:
    """What is left to compile, with the names of its inputs and outputs."""

    graph: PortableGraph
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


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
    step = lowered_step(model, example, mask, loss)
    return TrainingProgram(step.graph.compiled().pte, step.inputs, step.outputs, example.shape[0], mask.digest)


def lowered_step(model: nn.Module, example: Tensor, mask: Mask, loss: Loss) -> LoweredGraph:
    """Trace and lower the training step of a mask's submodel."""
    small = traced_submodel(model, example, mask, training=True)
    with quiet():
        step = trace_step(small, example, list(mask.graph.tensor), set(mask.trained_tensors), loss)
    return _lowered(step, small, example)


def lowered_prediction(model: nn.Module, example: Tensor, mask: Mask) -> LoweredGraph:
    """Trace and lower the forward pass of a mask's submodel in evaluation mode."""
    small = traced_submodel(model, example, mask, training=False)
    with quiet():
        prediction = trace_prediction(small, example, list(mask.graph.tensor), OUTPUT)
    return _lowered(prediction, small, example)


def _lowered(traced: TracedStep, small: TracedSubmodel, example: Tensor) -> LoweredGraph:
    graph = lower_portable(traced.graph, traced.examples, lambda operation: module_using(small, example, operation))
    return LoweredGraph(graph, traced.inputs, traced.outputs)
