"""The inference graph of a model: a batch and weights in, logits out, at any width and batch size.

Like the training graph it holds no weights; `edgefl.artifacts.bake` adds a submodel's weights. Norms use their running
statistics if the model keeps them; dropout is removed.
"""

import onnx
import torch
from torch import nn

from export.trace import declared_shape
from export.trace_model import trace_model

__all__ = ["OUTPUT", "inference_graph"]

OUTPUT = "logits"


def inference_graph(model: nn.Module, example: torch.Tensor) -> onnx.ModelProto:
    """Export the forward pass of a model in evaluation mode."""
    traced = trace_model(model, example, training=False)
    stored = traced.parameters | traced.buffers
    inputs = {"x": (traced.input.dtype, declared_shape(traced.input))}
    inputs |= {name: (value.dtype, declared_shape(value)) for name, value in stored.items()}
    outputs = {OUTPUT: (traced.output.name, traced.output.dtype, declared_shape(traced.output))}
    return traced.trace.emit.finish(type(model).__name__, inputs, outputs)
