"""One ONNX graph that trains every submodel: batch and weights in, loss, correctness and gradients out.

    inputs    x, y, then what the loss and dropout need (label_mask, seed), then parameters and running statistics
              by their names in the model
    outputs   loss; correct, one flag per sample; grad:<parameter>; new:<running statistic>

The batch and all channels that masks may cut are symbolic. `edgefl.artifacts.cut` removes gradients of frozen layers.
"""

import onnx
import torch
from torch import nn

from edgefl.artifacts.cut import GRADIENT, NEW_STATISTIC
from export.emitter import Shape
from export.losses import Loss, emit_loss
from export.trace import Value, declared_shape
from export.trace_model import TracedModel, trace_model

__all__ = ["training_graph"]


def training_graph(
    model: nn.Module, example: torch.Tensor, loss: Loss = Loss.CROSS_ENTROPY
) -> tuple[onnx.ModelProto, TracedModel]:
    """Export the training step of a model, traced on an example batch."""
    traced = trace_model(model, example, training=True)
    t = traced.trace
    emitted = emit_loss(t, traced.output, loss)
    t.run_backward()
    outputs: dict[str, tuple[str, str, Shape]] = {"loss": (emitted.value, "float32", [])}
    if emitted.correct is not None:
        outputs["correct"] = (emitted.correct, "bool", ["batch"])
    for name, value in traced.parameters.items():
        gradient = t.gradient(value)
        if gradient is not None:
            outputs[GRADIENT + name] = (gradient, "float32", declared_shape(value))
    for name, value in t.statistics.items():
        outputs[NEW_STATISTIC + name] = (value.name, value.dtype, declared_shape(value))
    inputs = {"x": _declared(traced.input)} | emitted.inputs | t.inputs
    inputs |= {name: _declared(value) for name, value in (traced.parameters | traced.buffers).items()}
    return t.emit.finish(type(model).__name__, inputs, outputs), traced


def _declared(value: Value) -> tuple[str, Shape]:
    return value.dtype, declared_shape(value)
